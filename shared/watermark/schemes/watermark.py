"""The watermark of a profile: one object that reweights, scores and gives exact p-values."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark import prf
from ttmark.shared.watermark.interruption import paused_ranges
from ttmark.shared.watermark.null_tables import NullTable, load_null_table
from ttmark.shared.watermark.nulls import Null
from ttmark.shared.watermark.prf import ContextState, absorb_context, prf_words
from ttmark.shared.watermark.ragged_arrays import Segments
from ttmark.shared.watermark.schemes.base import Parameter, Probs, Words
from ttmark.shared.watermark.schemes.registry import build_scheme, scheme_parameters
from ttmark.shared.watermark.score_distributions import CellScale

MAX_BLOCK_SIZE = 3
MAX_CONTEXT_WIDTH = 64
REPEAT_COUNTER = 1 << 31


class Watermark:
    """A scheme on blocks of r tokens keyed by the H tokens before them. Immutable, holds no key."""

    def __init__(
        self,
        scheme: str,
        block_size: int,
        context_width: int | None = None,
        parameters: Mapping[str, Parameter] | None = None,
    ) -> None:
        """`context_width` and `parameters` left out take the scheme's defaults.

        Raises ValueError for an unknown scheme or parameter or a value out of range.
        """
        self._scheme = build_scheme(scheme, parameters or {})
        width = self._scheme.default_context_width if context_width is None else context_width
        _check_range("block_size", block_size, MAX_BLOCK_SIZE)
        _check_range("context_width", width, MAX_CONTEXT_WIDTH)
        self.scheme = scheme
        self.block_size = block_size
        self.context_width = width
        self.parameters: Mapping[str, Parameter] = MappingProxyType(scheme_parameters(self._scheme))
        self.warmup_blocks = prf.warmup_blocks(block_size, width)
        self.null: Null = self._scheme.null
        """The distribution of one block's score without a watermark."""

    def tracker(self) -> prf.ContextTracker:
        """The context rule for a completion that is to be marked."""
        return prf.ContextTracker(self.block_size, self.context_width)

    def reweight(
        self,
        keys: NDArray[np.int64],
        contexts: NDArray[np.int64],
        blocks: NDArray[np.int64],
        probs: Probs,
        offsets: NDArray[np.int64],
    ) -> Probs:
        """Watermark S block distributions at once: P_w of each candidate block [N].

        keys [S, 2] (`key_lanes` of each sequence), contexts [S, H], blocks [N, r] (-1 fills a block that
        ends early), probs [N], offsets [S + 1]: segment i is the non-empty rows
        offsets[i]:offsets[i + 1] and sums to 1, before and after. Averaged over keys P_w equals P
        (paper, Section 3.2).
        """
        if offsets.shape[0] == 1:
            return probs
        segments = Segments(offsets)
        state = absorb_context(keys, contexts)
        words = self._block_words(state.take(segments.ids), blocks)
        weighted = self._scheme.reweight(
            segments.normalize(probs), words, self._context_words(state, contexts), segments
        )
        return segments.normalize(weighted)

    def score(
        self,
        keys: NDArray[np.int64],
        contexts: NDArray[np.int64],
        blocks: NDArray[np.int64],
        occurrences: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float64]:
        """Raw score of each emitted block [N]; keys [2] or [N, 2], contexts [N, H], blocks [N, r].

        `occurrences` [N] numbers equal (context, block) rows from 0. A repeated row is scored with
        words that no generator uses, so that all scores of a text are independent without watermark.
        """
        runs = []
        for first, stop in paused_ranges(0, contexts.shape[0]):
            of_run = slice(first, stop)
            again = None if occurrences is None else occurrences[of_run]
            own = keys if keys.ndim == 1 else keys[of_run]
            runs.append(self._score(own, contexts[of_run], blocks[of_run], again))
        return runs[0] if len(runs) == 1 else np.concatenate([np.empty(0), *runs])

    def _score(
        self,
        keys: NDArray[np.int64],
        contexts: NDArray[np.int64],
        blocks: NDArray[np.int64],
        occurrences: NDArray[np.int64] | None,
    ) -> NDArray[np.float64]:
        """`score` of few enough blocks to stay in the processor's cache."""
        state = absorb_context(keys, contexts)
        shared = self._context_words(state, contexts)
        scores = self._scheme.score(self._block_words(state, blocks), shared)
        if occurrences is not None and (repeated := np.flatnonzero(occurrences)).size:
            words = self._repeated_words(state.take(repeated), blocks[repeated], occurrences[repeated])
            scores[repeated] = self._scheme.score(words, shared[repeated])
        return scores

    @property
    def cells(self) -> CellScale:
        return self._scheme.cells

    def null_table(self) -> NullTable | None:
        """The null table of its scores and block size, the scheme's own or one that ships."""
        return load_null_table(self.null.name, self.block_size, self._scheme.tables)

    def law(self, probs: Probs) -> NDArray[np.float64]:
        """How the score of an emitted block is distributed, by its probability in (0, 1] [P]: [P, cells]."""
        return self._scheme.law(probs)

    def log10_p_value(self, total_score: float, blocks: int) -> float:
        """log10 P(sum of `blocks` raw scores >= total_score) without a watermark; 0 for no blocks."""
        return self.null.log10_tail(total_score, blocks) if blocks else 0.0

    def z_score(self, total_score: float, blocks: int) -> float:
        """The paper's z (Eq. 6) of the sum of `blocks` raw scores; 0 for no blocks."""
        if not blocks:
            return 0.0
        deviation = self.null.standard_deviation * math.sqrt(blocks)
        return (total_score - blocks * self.null.mean) / deviation

    def standardize(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Raw scores as (s - mu) / sigma, the paper's per-block z."""
        return (scores - self.null.mean) / self.null.standard_deviation

    def log10_p_of_z_sum(self, z_sum: float, blocks: int) -> float:
        """`log10_p_value` from the sum of standardised scores."""
        total = z_sum * self.null.standard_deviation + blocks * self.null.mean
        return self.log10_p_value(total, blocks)

    def blocks_needed(self, log10_p: float) -> int:
        """The fewest blocks whose best possible score has a p-value of at most 10**log10_p."""
        blocks = 1
        while self.log10_p_value(blocks * self.null.maximum, blocks) > log10_p:
            blocks += 1
        return blocks

    def _context_words(self, state: ContextState, contexts: NDArray[np.int64]) -> Words:
        """The words of each context [S, word_count], or [S, 0] for a scheme that reads none."""
        if not self._scheme.uses_context_words:
            return contexts[:, :0]
        return prf_words(state, halves=self._scheme.word_count)

    def _block_words(self, state: ContextState, blocks: NDArray[np.int64]) -> Words:
        """The words of each block [N, word_count]: of the block, then of block || counter."""
        return self._words(state, lambda call: _with_counter(blocks, call) if call else blocks)

    def _repeated_words(
        self, state: ContextState, blocks: NDArray[np.int64], occurrences: NDArray[np.int64]
    ) -> Words:
        """The words of later occurrences, from counters beyond those of the layers."""
        first = REPEAT_COUNTER + occurrences * -(-self._scheme.word_count // 2)
        return self._words(state, lambda call: _with_counter(blocks, first + call))

    def _words(self, state: ContextState, suffix: Callable[[int], NDArray[np.int64]]) -> Words:
        """`word_count` PRF words of each row, from the outputs of context || suffix(call)."""
        count = self._scheme.word_count
        calls = [prf_words(state, suffix(i // 2), halves=min(2, count - i)) for i in range(0, count, 2)]
        return calls[0] if len(calls) == 1 else np.concatenate(calls, axis=1)


def _with_counter(blocks: NDArray[np.int64], counters: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """Blocks [N, r] with a counter per row, or one for all -> [N, r + 1]."""
    column = np.zeros_like(blocks[:, :1]) + (counters if isinstance(counters, int) else counters[:, None])
    return np.concatenate([blocks, column], axis=1)


def _check_range(name: str, value: int, maximum: int) -> None:
    if type(value) is not int or not 1 <= value <= maximum:
        raise ValueError(f"{name} must be a whole number from 1 to {maximum}, not {value!r}")
