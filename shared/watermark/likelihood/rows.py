"""The blocks of one text, or of the messages of a conversation, as the likelihood ratio reads them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.contexts import first_occurrences
from ttmark.shared.watermark.detectors.positions import check_tokens, context_and_block
from ttmark.shared.watermark.likelihood.chain import Chain
from ttmark.shared.watermark.likelihood.edit_paths import as_table, evidence_paths
from ttmark.shared.watermark.likelihood.laws import Cells
from ttmark.shared.watermark.likelihood.ratios import PLAIN, Ratios
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.pool_scores import scores_under_each
from ttmark.shared.watermark.watermark import Watermark


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A position is where a block may begin: token H on, up to r - 1 before the end, of each message.

    A (context, block) that was there before has the same score: it says nothing new and has L = 1. So the
    scores of the others are independent under any key that did not make the text.

    Attributes:
        chains: one a message; each has its own positions.
        contexts, blocks: [rows, H] and [rows, r], of the rows that are scored.
        scored: positions of those rows among those of all messages, ascending [rows].
        positions: of all messages.
    """

    chains: tuple[Chain, ...]
    contexts: NDArray[np.int64]
    blocks: NDArray[np.int64]
    scored: NDArray[np.int64]
    positions: int

    @classmethod
    def of(
        cls,
        watermark: Watermark,
        ratios: Ratios,
        messages: Sequence[Sequence[int] | NDArray[np.int64]],
        readings: Sequence[Reading | None] | None = None,
    ) -> "Rows":
        """Of messages as tokens, each read by itself; contexts cross no message.

        Raises:
            ValueError: a token is outside 0..2**32-2, or a reading is of another number of tokens.
        """
        width, size = watermark.context_width, watermark.block_size
        texts = [check_tokens(message) for message in messages]
        readings = readings or [None] * len(texts)
        parts, chains = [], []
        for tokens, reading in zip(texts, readings, strict=True):
            if reading is not None and reading.log_probs.shape != tokens.shape:
                raise ValueError(f"a reading of {reading.log_probs.size} tokens for {tokens.size}")
            starts = np.arange(width, tokens.size - size + 1)
            contexts, blocks = context_and_block(watermark, tokens, starts)
            spent = _later(np.column_stack([contexts, starts % size]))
            kinds = np.full(starts.size, PLAIN)
            if reading is not None:
                kinds = PLAIN + 1 + ratios.mixtures.classes(reading.of_blocks(width, size))
            kinds = np.where(spent, ratios.spent(kinds), kinds)
            surprise = np.zeros(starts.size) if reading is None else reading.surprise(width, size)
            paths = as_table(evidence_paths(by_surprise=reading is not None))
            parts.append(np.concatenate([contexts, blocks], axis=1))
            chains.append(Chain(ratios, kinds.astype(np.uint8), surprise, paths, size))
        rows = np.concatenate(parts) if parts else np.empty((0, width + size), dtype=np.int64)
        again = _later(rows)
        bounds = np.cumsum([0, *(chain.positions for chain in chains)])
        fresh = tuple(
            chain.without(again[low:high])
            for chain, low, high in zip(chains, bounds[:-1], bounds[1:], strict=True)
        )
        scored = np.flatnonzero(~again)
        return cls(fresh, rows[scored, :width], rows[scored, width:], scored, len(rows))

    def without(self, spent: Sequence[NDArray[np.bool_] | None]) -> "Rows":
        """The same messages, whose blocks where `spent` [positions] say nothing; None: no block."""
        chains = [
            chain if own is None else chain.without(own)
            for chain, own in zip(self.chains, spent, strict=True)
        ]
        return replace(self, chains=tuple(chains))

    def cells_under_each(
        self, watermark: Watermark, prf_keys: Sequence[bytes]
    ) -> Iterator[tuple[slice, Cells]]:
        """Some keys at a time, which, and the cells of all messages' scores under them [keys, positions]."""
        for keys, scores in scores_under_each(watermark, prf_keys, self.contexts, self.blocks):
            cells = np.zeros((len(scores), self.positions), dtype=np.uint16)
            cells[:, self.scored] = watermark.cells.of(scores)
            yield keys, cells

    def of_messages(self, cells: Cells) -> Iterator[tuple[Chain, Cells]]:
        """Each message with its part of `cells` [keys, positions]."""
        start = 0
        for chain in self.chains:
            yield chain, cells[:, start : start + chain.positions]
            start += chain.positions


def _later(rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows [N, T] equal an earlier one [N]."""
    later = np.ones(len(rows), dtype=np.bool_)
    later[first_occurrences(np.ascontiguousarray(rows))] = False
    return later
