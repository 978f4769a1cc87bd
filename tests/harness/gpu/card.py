"""The card, as its driver names it, and the memory that a part takes."""

import re
import shutil
import subprocess
import threading
from typing import Self


def _ask(what: str) -> list[str]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    command = [tool, f"--query-gpu={what}", "--format=csv,noheader,nounits"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.stdout.strip().splitlines() if run.returncode == 0 else []


def card_name() -> str | None:
    """Of the first card, in letters for a folder; None: there is none."""
    names = _ask("name")
    return re.sub(r"[^a-z0-9]+", "-", names[0].lower()).strip("-") if names else None


class MemoryWatch:
    """Looks at the first card's memory each half second until the block is left."""

    def __init__(self, seconds: float = 0.5) -> None:
        self.most_mib: int | None = None
        self._seconds = seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            used = _ask("memory.used")
            if not used:
                return
            self.most_mib = max(self.most_mib or 0, int(used[0]))
            if self._ended.wait(self._seconds):
                return
