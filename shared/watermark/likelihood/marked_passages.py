"""Where a text carries the mark: forward and backward over the paths of E, given all scores under one key."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.block_scores import check_tokens, context_and_block
from ttmark.shared.watermark.likelihood.evidence import log10_of_evidence, ratios_of
from ttmark.shared.watermark.likelihood.forward_backward import Passes, find_passes, log10_of
from ttmark.shared.watermark.likelihood.hidden_markov_model import Chain, Rows
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.likelihood.score_distributions import Cells, Floats
from ttmark.shared.watermark.watermark import Watermark

# Tokens carried by at least so much belong to a passage; surely, possibly: ends of an interval whose
# coverage was simulated (docs/adr/0097).
_LIKELY, _SURELY, _POSSIBLY = 0.5, 0.95, 0.05


@dataclass(frozen=True, slots=True)
class Passage:
    """Tokens [start, end) that carry the mark, more likely than not.

    Attributes:
        inner: what surely does; its start is not before its end where nothing does.
        outer: what possibly does, around the passage.
        log10_gain: decades by which E falls if nothing of the passage is looked at.
    """

    start: int
    end: int
    inner: tuple[int, int]
    outer: tuple[int, int]
    log10_gain: float


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """The posterior of a text under a key.

    Attributes:
        inside: chance of each token to lie in a block of the mark [tokens].
        carried: chance of each token to lie in a marked passage, gaps of edited words included [tokens].
        passages: in the order of the text.
    """

    inside: Floats
    carried: Floats
    passages: tuple[Passage, ...]

    @property
    def share(self) -> float:
        """Of the tokens that lie in marked passages, expected."""
        return float(self.carried.mean()) if self.carried.size else 0.0

    @property
    def share_interval(self) -> tuple[float, float]:
        """An interval of 95 % for the share: tokens that surely do, and that possibly do, over all."""
        if not self.carried.size:
            return 0.0, 0.0
        return float((self.carried >= _SURELY).mean()), float((self.carried >= _POSSIBLY).mean())


def find_carried(
    watermark: Watermark,
    prf_key: bytes,
    tokens: Sequence[int] | NDArray[np.int64],
    *,
    reading: Reading | None = None,
) -> Carried:
    """Where a text carries the mark of a key, if it does at all: ask `detect_likelihood` first.

    What stands in the text a second time says nothing new, and counts as where it stands first.

    Raises:
        ValueError: a bad token or key, or a reading of another number of tokens.
    """
    tokens = check_tokens(tokens)
    passes = find_passes()
    rows = Rows.of(watermark, ratios_of(watermark), [tokens], [reading])
    chain = rows.chains[0]
    if chain.positions == 0:
        nothing = np.zeros(tokens.size)
        return Carried(nothing, nothing, ())
    cells = next(found for _, found in rows.cells_under_each(watermark, [prf_key]))[0]
    equal = _first_equals(watermark, tokens)
    inside, carried = posterior(passes, chain, cells, tokens.size, watermark.context_width, equal)
    return Carried(inside, carried, tuple(_passages(passes, chain, cells, carried, watermark.context_width)))


def posterior(
    passes: Passes,
    chain: Chain,
    cells: Cells,
    tokens: int,
    context_width: int,
    equal: NDArray[np.int64] | None = None,
) -> tuple[Floats, Floats]:
    """`Carried.inside` and `Carried.carried` from one row of cells, each prior by its own evidence.

    A position whose block stood before with its context is as the first one, number `equal` [positions].
    Where no block can begin the text is as at the nearest position.
    """
    begins, apart = np.zeros(chain.positions), np.zeros(chain.positions)
    found = [passes.posterior(chain, path, cells) for path in range(len(chain.paths))]
    along = log10_of(np.array([sums for *_, sums, _ in found]), np.array([scale for *_, scale in found]))
    weights = 10.0 ** (along - along.max())
    for weight, (own_begins, own_apart, _, _) in zip(weights / weights.sum(), found, strict=True):
        begins += weight * own_begins
        apart += weight * own_apart
    if equal is not None:
        begins, apart = begins[equal], apart[equal]
    inside = np.zeros(tokens)
    for token in range(chain.tokens):
        inside[context_width + token : context_width + token + chain.positions] += begins
    place = np.clip(np.arange(tokens) - context_width, 0, chain.positions - 1)
    return np.clip(inside, 0.0, 1.0), np.clip(1.0 - apart[place], 0.0, 1.0)


def _first_equals(watermark: Watermark, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first position with the same context and block as each [positions]."""
    starts = np.arange(watermark.context_width, tokens.size - watermark.block_size + 1)
    rows = np.concatenate(context_and_block(watermark, tokens, starts), axis=1)
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    equal: NDArray[np.int64] = first[which.reshape(-1)]
    return equal


def _passages(
    passes: Passes, chain: Chain, cells: Cells, carried: Floats, context_width: int
) -> list[Passage]:
    whole = float(log10_of_evidence(passes, chain, cells[None])[0])
    outer = _runs(carried >= _POSSIBLY)
    passages = []
    for start, end in _runs(carried >= _LIKELY):
        if end - start < chain.tokens:  # no block fits: a repeated context was copied
            continue
        surely = start + np.flatnonzero(carried[start:end] >= _SURELY)
        inner = (int(surely[0]), int(surely[-1]) + 1) if surely.size else (end, start)
        around = next((low, high) for low, high in outer if low <= start and end <= high)
        positions = np.arange(chain.positions) + context_width
        unseen = chain.without((positions + chain.tokens > start) & (positions < end))
        rest = float(log10_of_evidence(passes, unseen, cells[None])[0])
        passages.append(Passage(start, end, inner, around, whole - rest))
    return passages


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Runs [start, end) of what is true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
