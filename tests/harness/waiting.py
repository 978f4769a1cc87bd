"""Waiting for what comes to pass by itself."""

import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], seconds: float = 40) -> float:
    """Waits until it holds; the seconds that it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "it did not come to pass"
        time.sleep(0.02)
    return time.monotonic() - began
