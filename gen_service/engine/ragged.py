"""Lays the pieces of many sequences out as one ragged batch of rows."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from gen_service.engine.attention import Ancestors, AttentionPlan, Chunk, Span
from gen_service.engine.kv_cache import KvCache
from gen_service.engine.tree_attention import TreeAttention

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Append:
    """Tokens to cache, at `position` and after of the sequence whose cache rows begin at `base`."""

    base: int
    position: int
    tokens: Sequence[int]
    is_chunk: bool
    wants_logits: bool


@dataclass(frozen=True, slots=True)
class Probe:
    """Branches to evaluate and not to cache: `paths` [branches, depth] after `position` cached tokens."""

    base: int
    position: int
    paths: Ints


@dataclass(slots=True)
class RaggedBatch:
    """Rows of one pass: tree rows, padding, chunks.

    Attributes:
        keep: the rows whose logits are wanted, in the order of the pieces.
        counts: how many of them belong to each piece.
    """

    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    keep: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    tree_rows: int = 0
    _prefixes: list[tuple[int, int, int, int]] = field(default_factory=list)
    _ancestors: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    _chunks: list[Chunk] = field(default_factory=list)
    _write_rows: list[int] = field(default_factory=list)
    _write_slots: list[int] = field(default_factory=list)

    @classmethod
    def lay_out(cls, pieces: Sequence[Append | Probe], pad: Callable[[int], int]) -> "RaggedBatch":
        """Rows of `pieces`, and rows that nobody looks at, so many that there are `pad(rows)` in all."""
        batch = cls()
        kept: list[list[int]] = [[] for _ in pieces]
        chunks: list[tuple[int, Append]] = []
        for index, piece in enumerate(pieces):
            if isinstance(piece, Probe):
                kept[index] = batch._add_probe(piece)
            elif piece.is_chunk:
                chunks.append((index, piece))
            else:
                kept[index] = batch._add_commit(piece)
        rows = len(batch.tokens) + sum(len(piece.tokens) for _, piece in chunks)
        batch._add_padding(pad(rows) - rows)
        batch.tree_rows = len(batch.tokens)
        for index, piece in chunks:
            kept[index] = batch._add_chunk(piece)
        batch.keep = [row for rows in kept for row in rows]
        batch.counts = [len(rows) for rows in kept]
        return batch

    def attention_plan(
        self, cache: KvCache, device: torch.device, *, tree_kernel: bool = False
    ) -> AttentionPlan:
        """The plan of this batch, for the Triton kernel or for torch's own operators."""

        def on_device(rows: Sequence[int] | Sequence[list[int]]) -> torch.Tensor:
            return torch.tensor(rows, dtype=torch.int64, device=device)

        spans: dict[int | None, tuple[Span, ...]] = {}

        def spans_of(window: int | None) -> tuple[Span, ...]:
            if window not in spans:
                spans[window] = self._spans(window)
            return spans[window]

        return AttentionPlan(
            cache=cache,
            tree_rows=self.tree_rows,
            spans=spans_of,
            ancestors=tuple(
                Ancestors(on_device([row for row, _ in pairs]), on_device([source for _, source in pairs]))
                for _, pairs in sorted(self._ancestors.items())
            ),
            chunks=tuple(self._chunks),
            write_rows=on_device(self._write_rows),
            write_slots=on_device(self._write_slots),
            kernel=TreeAttention(spans_of, on_device(self._own_rows()).int()) if tree_kernel else None,
        )

    def _own_rows(self) -> list[list[int]]:
        """What each tree row attends to in this pass, [rows, depth]: itself, its ancestors, -1 for none."""
        rows = [[row, *[-1] * len(self._ancestors)] for row in range(self.tree_rows)]
        for level, distance in enumerate(sorted(self._ancestors), start=1):
            for row, source in self._ancestors[distance]:
                rows[row][level] = source
        return rows

    def _add_row(self, token: int, position: int, depth: int) -> int:
        self.tokens.append(token)
        self.positions.append(position)
        self.depths.append(depth)
        return len(self.tokens) - 1

    def _add_probe(self, probe: Probe) -> list[int]:
        """Each different start of a path becomes one row; the rows of one depth lie together."""
        first = len(self.tokens)
        parents: dict[tuple[int, ...], list[int]] = {(): []}  # path -> its rows, the latest first
        for depth in range(probe.paths.shape[1]):
            for path in dict.fromkeys(map(tuple, probe.paths[:, : depth + 1].tolist())):
                above = parents[path[:-1]]
                row = self._add_row(path[-1], probe.position + depth, depth)
                self._link(row, above)
                parents[path] = [row, *above]
        self._prefixes.append((first, len(self.tokens), probe.base, probe.position))
        return [parents[tuple(path)][0] for path in probe.paths.tolist()]

    def _add_commit(self, piece: Append) -> list[int]:
        first = len(self.tokens)
        above: list[int] = []
        for depth, token in enumerate(piece.tokens):
            row = self._add_row(token, piece.position + depth, depth)
            self._link(row, above)
            above.insert(0, row)
        self._prefixes.append((first, len(self.tokens), piece.base, piece.position))
        self._write(piece, first)
        return [above[0]] if piece.wants_logits else []

    def _add_chunk(self, piece: Append) -> list[int]:
        first = len(self.tokens)
        for depth, token in enumerate(piece.tokens):
            self._add_row(token, piece.position + depth, depth)
        self._chunks.append(Chunk(first, len(self.tokens), piece.base, piece.position))
        self._write(piece, first)
        return [len(self.tokens) - 1] if piece.wants_logits else []

    def _add_padding(self, rows: int) -> None:
        if rows:
            first = len(self.tokens)
            for _ in range(rows):
                self._add_row(0, 0, 0)
            self._prefixes.append((first, len(self.tokens), 0, 0))

    def _link(self, row: int, above: Sequence[int]) -> None:
        for distance, source in enumerate(above):
            self._ancestors[distance].append((row, source))

    def _write(self, piece: Append, first: int) -> None:
        slot = piece.base + piece.position
        self._write_rows.extend(range(first, first + len(piece.tokens)))
        self._write_slots.extend(range(slot, slot + len(piece.tokens)))

    def _spans(self, window: int | None) -> tuple[Span, ...]:
        """Prefix of each run of tree rows; under a window it begins elsewhere for each depth."""
        spans: list[Span] = []
        for start, stop, base, length in self._prefixes:
            if window is None or length + max(self.depths[start:stop]) < window:
                spans.append(Span(start, stop, base, base + length))
                continue
            while start < stop:
                depth = self.depths[start]
                end = next((row for row in range(start, stop) if self.depths[row] != depth), stop)
                first = min(length, max(0, length + depth + 1 - window))
                spans.append(Span(start, end, base + first, base + length))
                start = end
        return tuple(spans)
