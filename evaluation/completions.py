"""Generated texts on disk: one JSON line per text, appended as it is finished; no text is made twice."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Completion:
    """One text.

    Attributes:
        index: its number in the cell: prompt, key and seed follow from it.
        token_ids: tokens of the completion, without the prompt.
        watermarked_blocks: blocks that carry the watermark.
        seconds: wall time since the text before it was finished; their sum is the time that the texts took.
        rows: rows of forward passes since then, prompts included; likewise.
    """

    index: int
    token_ids: tuple[int, ...]
    watermarked_blocks: int
    seconds: float
    rows: int

    def tokens(self, length: int | None = None) -> NDArray[np.int64]:
        """The first `length` tokens."""
        return np.array(self.token_ids[:length], dtype=np.int64)


class CompletionFile:
    """The texts of one cell."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[int, Completion]:
        """Texts by index; a line that was cut off by a crash is left out."""
        if not self._path.is_file():
            return {}
        texts = {}
        for line in self._path.read_bytes().splitlines():
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            record["token_ids"] = tuple(record["token_ids"])
            texts[record["index"]] = Completion(**record)
        return texts

    def append(self, text: Completion) -> None:
        """Writes one text; it is on disk when this returns."""
        with self._path.open("ab") as file:
            file.write(b"\n" * self._ends_inside_a_line() + orjson.dumps(asdict(text)) + b"\n")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps other processes from adding texts to this cell meanwhile."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.with_suffix(".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _ends_inside_a_line(self) -> bool:
        if not self._path.is_file() or not self._path.stat().st_size:
            return False
        with self._path.open("rb") as file:
            file.seek(-1, 2)
            return file.read(1) != b"\n"
