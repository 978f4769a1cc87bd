"""How long each part of a run takes, in minutes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Parts:
    """Prints each part with its time as it ends."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Times what the block does."""
        print(f"{name} ...", flush=True)
        started = time.monotonic()
        yield
        print(f"{name}: {(time.monotonic() - started) / 60:.1f} min", flush=True)

    def total(self) -> float:
        """Minutes since the run began."""
        return (time.monotonic() - self._started) / 60
