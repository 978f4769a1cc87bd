"""Lays the pieces of many sequences out as one ragged batch of rows."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import torch

from ttmark.gen_service.decoding.filtered_tokens import Ints
from ttmark.gen_service.engine.model.attention import Adopted, Ancestors, AttentionPlan, Chunk, KvCache
from ttmark.gen_service.engine.model.tree_attention import (
    TokenTree,
    TreeAttention,
    prefixes_of,
    spans_of,
    tile_spans,
)
from ttmark.gen_service.engine.native import Kernels


@dataclass(frozen=True, slots=True)
class Branches:
    """Keys and values of probed branches, kept until one of them is chosen.

    Attributes:
        paths: tokens of the branches [branches, depth].
        rows: where the keys and values of each token lie in those of the pass [branches, depth].
        layers: keys and values of all rows that the pass probed, [probed, 2, kv_heads, dim] for each layer.
    """

    paths: Ints
    rows: Ints
    layers: dict[int, torch.Tensor]

    def rows_of(self, path: Sequence[int]) -> Ints | None:
        """The rows of a branch [depth]; None if no branch is `path`."""
        found = np.flatnonzero((self.paths == np.asarray(path)).all(axis=1))
        return self.rows[found[0]] if len(found) else None


@dataclass(frozen=True, slots=True)
class Append:
    """Tokens to cache, at `position` and after of the sequence whose cache rows begin at `base`.

    Attributes:
        wants_logits: of the last token, or with `every_row` of each.
        adopted: branches that were probed, and the rows among them of the tokens right before `position`:
            their keys and values are cached as they are.
    """

    base: int
    position: int
    tokens: Sequence[int]
    is_chunk: bool
    wants_logits: bool
    adopted: tuple[Branches, Ints] | None = None
    every_row: bool = False


@dataclass(slots=True)
class Probe:
    """Branches to evaluate and not to cache: `paths` [branches, depth] after `position` cached tokens.

    Attributes:
        branches: left here by a runner that keeps keys and values of probed rows.
    """

    base: int
    position: int
    paths: Ints
    branches: Branches | None = None


@dataclass(slots=True)
class RaggedBatch:
    """Rows of one pass: chunks, commits, probes, padding.

    Attributes:
        probes: first probed row, and the row after the last.
    """

    rows: int = 0
    probes: tuple[int, int] = (0, 0)
    _tokens: list[Sequence[int] | Ints] = field(default_factory=list)
    _positions: list[Ints] = field(default_factory=list)
    _slots: list[Ints] = field(default_factory=list)
    _kept: dict[int, Ints] = field(default_factory=dict)
    _chunks: list[Chunk] = field(default_factory=list)
    _trees: list[TokenTree] = field(default_factory=list)
    _ancestors: dict[int, list[Ints]] = field(default_factory=lambda: defaultdict(list))  # [2, rows] each
    _adopted: dict[int, tuple[dict[int, torch.Tensor], list[Ints]]] = field(default_factory=dict)
    _probes: list[tuple[Probe, Ints]] = field(default_factory=list)  # rows of each path [branches, depth]

    @classmethod
    def lay_out(cls, pieces: Sequence[Append | Probe], pad: Callable[[int], int]) -> "RaggedBatch":
        """Rows of `pieces`, and rows that nobody looks at, so many that there are `pad(rows)` in all."""
        batch = cls()
        appends = [(i, piece) for i, piece in enumerate(pieces) if isinstance(piece, Append)]
        for index, append in sorted(appends, key=lambda item: not item[1].is_chunk):
            batch._add_append(index, append)
        first = batch.rows
        for index, piece in enumerate(pieces):
            if isinstance(piece, Probe):
                batch._add_probe(index, piece, first)
        batch.probes = (first, batch.rows)
        padding = pad(batch.rows) - batch.rows
        batch._add_rows(np.zeros(padding, dtype=np.int64), np.zeros(padding, dtype=np.int64))
        return batch

    @property
    def tokens(self) -> Ints:
        return np.concatenate(self._tokens, dtype=np.int64)

    @property
    def positions(self) -> Ints:
        return np.concatenate(self._positions)

    @property
    def slots(self) -> Ints:
        """The cache rows of the first rows of the pass: those of chunks and commits."""
        return np.concatenate(self._slots) if self._slots else np.empty(0, dtype=np.int64)

    def keep(self, pieces: int) -> tuple[Ints, list[int]]:
        """The rows whose logits are wanted, in the order of the pieces, and how many belong to each piece."""
        none = np.empty(0, dtype=np.int64)
        kept = [self._kept.get(index, none) for index in range(pieces)]
        return np.concatenate(kept), [len(rows) for rows in kept]

    def attention_plan(
        self,
        kv_cache: KvCache,
        device: torch.device,
        *,
        kernels: Kernels | None = None,
        keep_probed: bool = False,
    ) -> AttentionPlan:
        """The plan of this batch, for compiled kernels or for torch's own operators.

        Args:
            keep_probed: keys and values of probed rows are kept for `leave_branches`.
        """

        def on_device(rows: Ints | Sequence[int]) -> torch.Tensor:
            return torch.from_numpy(np.asarray(rows, dtype=np.int64)).to(device)

        return AttentionPlan(
            cache=kv_cache,
            slots=on_device(self.slots),
            chunks=tuple(self._chunks),
            spans=cache(lambda window, groups: spans_of(self._trees, window, groups, device)),
            probes=self.probes,
            ancestors=tuple(
                Ancestors(*on_device(np.concatenate(pairs, axis=1)))
                for _, pairs in sorted(self._ancestors.items())
            ),
            kernel=TreeAttention(
                kernels,
                cache(lambda window, groups: on_device(self.tiles(window, kernels.tile_rows(groups))).int()),
                on_device(self.own_rows()).int(),
            )
            if kernels and self._trees
            else None,
            adopted=tuple(
                Adopted(layers, *on_device(np.concatenate(pairs, axis=1)))
                for layers, pairs in self._adopted.values()
            ),
            kept={} if keep_probed and self._probes else None,
        )

    def leave_branches(self, kept: dict[int, torch.Tensor]) -> None:
        for probe, rows in self._probes:
            probe.branches = Branches(probe.paths, rows, kept)

    def tiles(self, window: int | None, tile_rows: int) -> Ints:
        """A kernel's tiles of commits and probes; see `tile_spans`."""
        return tile_spans(prefixes_of(self._trees, window), tile_rows)

    def own_rows(self) -> Ints:
        """What each commit and probe attends to of this pass [rows, depth]: itself, its ancestors, -1."""
        first = self._chunks[-1].stop if self._chunks else 0
        rows = self.probes[1] - first
        depth = max(len(tree.depths) for tree in self._trees)
        own = np.full((rows, depth), -1, dtype=np.int64)
        own[:, 0] = np.arange(rows)
        start = 0
        for tree in self._trees:
            for distance in range(1, len(tree.depths) if tree.is_commit else 0):
                later = np.arange(start + distance, start + len(tree.depths))
                own[later, distance] = later - distance
            start += sum(tree.depths)
        for distance, pairs in self._ancestors.items():
            chosen, sources = np.concatenate(pairs, axis=1) + self.probes[0] - first
            own[chosen, distance + 1] = sources
        return own

    def _add_rows(self, tokens: Sequence[int] | Ints, positions: Ints) -> int:
        """Appends rows; the number of the first of them."""
        first = self.rows
        self._tokens.append(tokens)
        self._positions.append(positions)
        self.rows += len(tokens)
        return first

    def _add_append(self, index: int, piece: Append) -> None:
        count = len(piece.tokens)
        positions = np.arange(piece.position, piece.position + count)
        first = self._add_rows(piece.tokens, positions)
        self._slots.append(positions + piece.base)
        if piece.is_chunk:
            self._chunks.append(Chunk(first, self.rows, piece.base, piece.position))
        else:
            self._trees.append(TokenTree((1,) * count, piece.base, piece.position, is_commit=True))
        if piece.wants_logits:
            self._kept[index] = np.arange(first if piece.every_row else self.rows - 1, self.rows)
        if piece.adopted is not None:
            branches, rows = piece.adopted
            slots = piece.base + piece.position - len(rows) + np.arange(len(rows))
            # The branches of one pass share their layers, and are copied together.
            _, pairs = self._adopted.setdefault(id(branches.layers), (branches.layers, []))
            pairs.append(np.stack([rows, slots]))

    def _add_probe(self, index: int, probe: Probe, first: int) -> None:
        """Each different start of a path becomes one row; the rows of one depth lie together.

        Args:
            first: the first probed row of the pass, from which ancestors are counted.
        """
        paths = probe.paths
        counts: list[int] = []
        above = np.empty((len(paths), 0), dtype=np.int64)  # rows of each path so far, the latest first
        for depth in range(paths.shape[1]):
            chosen = row_of = np.arange(len(paths))
            if depth + 1 < paths.shape[1]:
                _, chosen, row_of = np.unique(
                    paths[:, : depth + 1], axis=0, return_index=True, return_inverse=True
                )
            position = np.full(len(chosen), probe.position + depth)
            start = self._add_rows(paths[chosen, depth], position)
            for distance, sources in enumerate(above[chosen].T):
                rows = np.arange(start, self.rows)
                self._ancestors[distance].append(np.stack([rows, sources]) - first)
            above = np.column_stack([start + row_of, above])
            counts.append(len(chosen))
        self._probes.append((probe, above[:, ::-1] - first))
        self._trees.append(TokenTree(tuple(counts), probe.base, probe.position))
        self._kept[index] = above[:, 0]
