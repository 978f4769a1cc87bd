"""The changes that a source file can undergo: each makes one expression or statement wrong."""

import ast
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from tests.harness.mutation.edits import edits_of


@dataclass(frozen=True)
class Change:
    """One change of one file; `first` to `last` are the lines of which a test must run one to see it."""

    path: str
    line: int
    code: str
    what: str
    first: int
    last: int
    begin: int
    end: int
    replacement: str

    @property
    def key(self) -> str:
        """Names the change wherever its line stands in the file."""
        return f"{self.path} | {self.code} | {self.what}"

    def apply(self, source: bytes) -> bytes:
        """The file after the change."""
        return source[: self.begin] + self.replacement.encode() + source[self.end :]


def changes_of(root: Path, path: str) -> list[Change]:
    """Every change of a file below `root`, in its order."""
    source = (root / path).read_bytes()
    lines = source.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    found = []
    for (first, last), (node, replacement) in edits_of(ast.parse(source), (1, len(lines))):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = " ".join(source[begin:end].decode().split())
        code, what = lines[node.lineno - 1].decode().strip(), f"{before} -> {replacement}"
        if before != replacement:
            found.append(Change(path, node.lineno, code, what, first, last, begin, end, replacement))
    return found
