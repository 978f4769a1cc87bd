"""Where a text carries the mark: forward and backward over the paths of E, given all scores under one key."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.block_scores import check_tokens, context_and_block
from ttmark.shared.watermark.likelihood.evidence import log10_of_evidence, ratios_of
from ttmark.shared.watermark.likelihood.forward_backward import Passes, find_passes, log10_of
from ttmark.shared.watermark.likelihood.hidden_markov_model import MarkovChain, Path, Rows, as_table
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.schemes.watermark import Watermark
from ttmark.shared.watermark.score_distributions import Cells, Floats

# Tokens carried by at least so much belong to a passage; surely, possibly: ends of an interval whose
# coverage was measured (docs/results/detection.md).
_LIKELY, _SURELY, POSSIBLY = 0.5, 0.95, 0.05
# Priors of texts that take turns with others every few lines, beside those of E.
_IN_TURNS = (Path(0, 0.03, find=0.03, lose=0.9), Path(1, 0.03, find=0.03, lose=0.9))
# Tokens of an answer before its mark begins, as openings have them.
_OPENING = 16


@dataclass(frozen=True, slots=True)
class Passage:
    """Tokens [start, end) that carry the mark, more likely than not.

    Attributes:
        core: from the first to the last that surely does; all of them where none does.
        log10_gain: decades by which E falls if nothing of the passage is looked at.
    """

    start: int
    end: int
    core: tuple[int, int]
    log10_gain: float


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """The posterior of a text under a key.

    Attributes:
        carried: chance of each token to lie in a marked passage, gaps of edited words included [tokens].
        passages: in the order of the text.
    """

    carried: Floats
    passages: tuple[Passage, ...]


def share_of(carried: Floats, keys: int = 1) -> tuple[float, float, float]:
    """Of the tokens that lie in marked passages: expected, and an interval of 95 %.

    Tokens that surely do are at least marked, at most those that possibly do, with what may be the opening
    before them. A text with answers of several keys is likelier to hold more of them.

    Args:
        carried: chance of each token, whatever the key [tokens].
        keys: that were found.
    """
    if not carried.size:
        return 0.0, 0.0, 0.0
    possibly = np.append(carried >= POSSIBLY / keys, np.zeros(_OPENING, dtype=np.bool_))
    reached = np.lib.stride_tricks.sliding_window_view(possibly, _OPENING + 1).any(axis=1)
    return float(carried.mean()), float((carried >= _SURELY).mean()), float(reached.mean())


def find_carried(
    watermark: Watermark,
    prf_key: bytes,
    tokens: Sequence[int] | NDArray[np.int64],
    *,
    reading: Reading | None = None,
) -> Carried:
    """Where a text carries the mark of a key, if it does at all: ask a `LikelihoodTest` first.

    What stands in the text a second time says nothing new, and counts as where it stands first.

    Raises:
        ValueError: a bad token or key, or a reading of another number of tokens.
    """
    tokens = check_tokens(tokens)
    passes = find_passes()
    rows = Rows.of(watermark, ratios_of(watermark), [tokens], [reading])
    chain = rows.chains[0]
    if chain.positions == 0:
        return Carried(np.zeros(tokens.size), ())
    cells = next(found for _, found in rows.cells_under_each(watermark, [prf_key]))[0]
    apart = _apart(passes, chain.with_paths(np.concatenate([chain.paths, as_table(_IN_TURNS)])), cells)
    # Where no block can begin the text is as at the nearest position.
    place = np.clip(np.arange(tokens.size) - watermark.context_width, 0, chain.positions - 1)
    carried = np.clip(1.0 - apart[_first_equals(watermark, tokens)][place], 0.0, 1.0)
    return Carried(carried, tuple(_passages(passes, chain, cells, carried, watermark.context_width)))


def _apart(passes: Passes, chain: MarkovChain, cells: Cells) -> Floats:
    """Chance of each position to be away from the mark, each prior by its own evidence [positions]."""
    found = [passes.posterior(chain, path, cells) for path in range(len(chain.paths))]
    along = log10_of(np.array([sums for *_, sums, _ in found]), np.array([scale for *_, scale in found]))
    weights = 10.0 ** (along - along.max())
    apart: Floats = weights / weights.sum() @ np.array([own for _, own, _, _ in found])
    return apart


def _first_equals(watermark: Watermark, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first position with the same context and block as each [positions]."""
    starts = np.arange(watermark.context_width, tokens.size - watermark.block_size + 1)
    rows = np.concatenate(context_and_block(watermark, tokens, starts), axis=1)
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    equal: NDArray[np.int64] = first[which.reshape(-1)]
    return equal


def _passages(
    passes: Passes, chain: MarkovChain, cells: Cells, carried: Floats, context_width: int
) -> list[Passage]:
    whole = float(log10_of_evidence(passes, chain, cells[None])[0])
    passages = []
    for start, end in _runs(carried >= _LIKELY):
        if end - start < chain.tokens:  # no block fits: a repeated context was copied
            continue
        surely = start + np.flatnonzero(carried[start:end] >= _SURELY)
        core = (int(surely[0]), int(surely[-1]) + 1) if surely.size else (start, end)
        positions = np.arange(chain.positions) + context_width
        unseen = chain.without((positions + chain.tokens > start) & (positions < end))
        rest = float(log10_of_evidence(passes, unseen, cells[None])[0])
        passages.append(Passage(start, end, core, whole - rest))
    return passages


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
