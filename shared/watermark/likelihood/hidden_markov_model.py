"""The hidden Markov model of marked text that was edited: its paths, its score ratios, the texts it reads.

At the start of each token a path is *inside* (a block has just ended), in a *gap* (a few words of a marked
passage that carry no mark: edited ones), or *away* (text that is not ours). It begins a block there or skips
the token. A block takes it inside, r tokens on.

A `Path` is a prior over paths, `Ratios` the likelihood ratios of a block's score, marked over unmarked,
`MarkovChain` one text without keys and scores, and `Rows` its blocks, or those of a conversation's messages.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.block_scores import check_tokens, context_and_block, scores_under_each
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.prf import UNKNOWN_TOKEN, first_occurrences
from ttmark.shared.watermark.schemes.watermark import Watermark
from ttmark.shared.watermark.score_distributions import Cells, Floats


@dataclass(frozen=True, slots=True)
class Path:
    """One prior over paths; every chance is of a step at one token.

    Attributes:
        strength: number of the mixtures of p that its blocks have.
        leave: chance to leave a marked run after a block.
        enter: chance to begin a block in a gap.
        find: chance to begin a block away.
        lose: share of those who leave that go away; the others are in a gap.
        away: chance to start away, else in a gap.
        by_surprise: whether the chance to leave grows, and those to begin fall, with a token's surprise.
    """

    strength: int
    leave: float
    enter: float = 0.35
    find: float = 0.005
    lose: float = 0.1
    away: float = 0.5
    by_surprise: bool = False


_LEAVES = (0.015, 0.06, 0.2)
_FITTED, _WEAKER, _STRONGER = range(3)
STRENGTHS = (0, 2, -4)
"""How many points of p up the mixtures of each strength are moved: the last one is for draws alone."""


def evidence_paths(by_surprise: bool) -> tuple[Path, ...]:
    """The priors that E is the mean over; with a reader half of them follow its surprise."""
    kinds = (False, True) if by_surprise else (False,)
    return tuple(
        Path(strength, leave, by_surprise=kind)
        for kind in kinds
        for strength in (_FITTED, _WEAKER)
        for leave in _LEAVES
    )


def drawn_paths(positions: int) -> tuple[Path, ...]:
    """Further priors that draws come from, for texts with so many positions.

    Where E of text without the mark is large, it is by a few blocks together whose scores are high: short
    passages, and in short texts marks that are stronger than any text has.
    """
    rare = 1.0 / max(4, positions)
    return (
        Path(_STRONGER, 0.015),
        Path(_STRONGER, 0.06, find=0.1, lose=0.3, away=1.0),
        Path(_STRONGER, 0.2, find=rare, lose=0.3, away=1.0),
        Path(_FITTED, 0.015, find=0.1, away=1.0),
        Path(_FITTED, 0.06, find=rare, lose=0.3, away=1.0),
        Path(_WEAKER, 0.06, find=rare, lose=0.3, away=1.0),
    )


def as_table(paths: Sequence[Path]) -> NDArray[np.float64]:
    """One row a prior, as the forward algorithm reads them: [paths, 7]."""
    return np.array(
        [(p.strength, p.leave, p.enter, p.find, p.lose, p.away, float(p.by_surprise)) for p in paths]
    )


VERSION = 1
POINTS = (0.003, 0.01, 0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.4, 0.5, 0.65, 0.8, 0.9, 0.97, 1.0)
"""Values of p that mixtures are over."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixtures:
    """Weights of `POINTS` for blocks of r tokens.

    Attributes:
        plain: without a reader [points].
        limits: rising natural log-probabilities of a block between the classes of a reader [classes - 1].
        read: by class [classes, points].
    """

    plain: Floats
    limits: Floats
    read: Floats

    def classes(self, log_probs: Floats) -> NDArray[np.int64]:
        """The class of blocks that a reader found so likely [N], from 0; those not read count as the last."""
        finite = np.nan_to_num(log_probs, nan=0.0)
        return np.searchsorted(self.limits, finite)


@cache
def load_mixtures(block_size: int) -> Mixtures:
    """Those that ship with the package: fitted to texts of a model, read by another one."""
    file = resources.files("ttmark.shared.watermark") / "tables" / f"mixtures-r{block_size}.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    if data["version"] != VERSION:
        raise ValueError(f"mixtures of version {data['version']}, not {VERSION}")
    return Mixtures(np.array(data["plain"]), np.array(data["limits"]), np.array(data["read"]))


def moved(weights: Floats, points: int) -> Floats:
    """The mixtures [.., points] with every p so many points up, as far as there are: of another strength."""
    last = weights.shape[-1] - 1
    result = np.zeros_like(weights)
    for point in range(last + 1):
        result[..., min(max(point + points, 0), last)] += weights[..., point]
    return result


Words = NDArray[np.uint64]

# Of blocks that a path takes for marked: so many carry no mark after all, whatever p was.
_UNMARKED = 0.03
# Of blocks after a context that was there before: a generator marks none of them, but another text may hold
# them for the first time.
_REPEATED = 0.75

NEUTRAL, PLAIN = 0, 1
"""Classes of blocks: with L = 1 whatever the score is, and without a reader."""


@dataclass(frozen=True, slots=True, eq=False)
class Ratios:
    """Tables by strength and class of the block: neutral, plain, read; then plain and read, repeated.

    Attributes:
        ratios: L [strengths, classes, cells]; its mean over `null` is 1.
        null: of a score without the mark [cells].
        limits: upper ends of the cells of marked scores among 64-bit words [strengths, classes, cells].
        guides: cell of the least word with each first byte [strengths, classes, 256].
        mixtures: how blocks that were read fall into classes.
    """

    ratios: Floats
    null: Floats
    limits: Words
    guides: Cells
    mixtures: Mixtures

    @classmethod
    def of(cls, watermark: Watermark, mixtures: Mixtures | None = None) -> "Ratios":
        """For the watermark's scheme and block size; `mixtures` in place of those that ship."""
        mixtures = mixtures or load_mixtures(watermark.block_size)
        laws = watermark.law(np.array(POINTS))  # [points, cells]
        null = laws[-1]
        fitted = np.concatenate([mixtures.plain[None], mixtures.read])  # [classes, points]
        marked = []
        for points in STRENGTHS:
            fresh = _UNMARKED * null + (1.0 - _UNMARKED) * (moved(fitted, points) @ laws)
            marked.append(np.concatenate([null[None], fresh, _REPEATED * null + (1.0 - _REPEATED) * fresh]))
        shares = np.stack(marked)
        possible = null > 0.0
        ratios = np.ones_like(shares)
        ratios[..., possible] = shares[..., possible] / null[possible]
        ends = np.cumsum(shares, axis=-1) * 2.0**64
        limits = np.minimum(ends, float(2**64 - 2**11)).astype(np.uint64)
        bytes_ = np.arange(256, dtype=np.uint64) << np.uint64(56)
        guides = np.stack(
            [[np.searchsorted(row[:-1], bytes_, side="right") for row in rows] for rows in limits]
        ).astype(np.uint16)
        return cls(np.ascontiguousarray(ratios), null, limits, guides, mixtures)

    def repeated(self, classes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The classes [N] of blocks that follow a context which was there before."""
        return np.where(classes == NEUTRAL, NEUTRAL, classes + len(self.mixtures.read) + 1)


MOST_PATHS = 64  # as in kernels.c


@dataclass(frozen=True, slots=True, eq=False)
class MarkovChain:
    """What may happen at each position of a text, where blocks may begin.

    Attributes:
        ratios: L by strength, class and cell.
        kinds: class of each block [positions] uint8.
        surprise: how far the chance to leave a run goes towards 1 before each block, 0 to 1 [positions].
        paths: priors as `as_table` gives them [paths, 7].
        tokens: of a block.
        positions: where a block may begin.
    """

    ratios: Ratios
    kinds: NDArray[np.uint8]
    surprise: Floats
    paths: Floats
    tokens: int
    positions: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "positions", int(self.kinds.size))
        if not 1 <= len(self.paths) <= MOST_PATHS:
            raise ValueError(f"1 to {MOST_PATHS} priors over paths, not {len(self.paths)}")
        if self.kinds.shape != self.surprise.shape:
            raise ValueError(f"{self.surprise.size} surprises for {self.kinds.size} positions")
        if self.kinds.size and int(self.kinds.max()) >= self.ratios.ratios.shape[1]:
            raise ValueError("a class of blocks that there is no table for")

    @classmethod
    def plain(cls, ratios: Ratios, positions: int, paths: Floats, tokens: int) -> "MarkovChain":
        """A text without a reader, no block of which repeats."""
        kinds = np.full(positions, PLAIN, dtype=np.uint8)
        return cls(ratios, kinds, np.zeros(positions), paths, tokens)

    def with_paths(self, paths: Floats) -> "MarkovChain":
        return replace(self, paths=paths)

    def without(self, silent: NDArray[np.bool_]) -> "MarkovChain":
        """The same text, whose blocks where `silent` [positions] say nothing: L = 1, and in draws too."""
        return replace(self, kinds=np.where(silent, NEUTRAL, self.kinds).astype(np.uint8))


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A position is where a block may begin: token H on, up to r - 1 before the end, of each message.

    A (context, block) that was there before has the same score: it says nothing new and has L = 1, as one
    with an unknown token has. So the scores of the others are independent under any key that did not make
    the text.

    Attributes:
        chains: one a message; each has its own positions.
        contexts, blocks: [rows, H] and [rows, r], of the rows that are scored.
        scored: positions of those rows among those of all messages, ascending [rows].
        positions: of all messages.
    """

    chains: tuple[MarkovChain, ...]
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
            is_repeated = _later(np.column_stack([contexts, starts % size]))
            kinds = np.full(starts.size, PLAIN)
            if reading is not None:
                kinds = PLAIN + 1 + ratios.mixtures.classes(reading.of_blocks(width, size))
            kinds = np.where(is_repeated, ratios.repeated(kinds), kinds)
            surprise = np.zeros(starts.size) if reading is None else reading.surprise(width, size)
            paths = as_table(evidence_paths(by_surprise=reading is not None))
            parts.append(np.concatenate([contexts, blocks], axis=1))
            chains.append(MarkovChain(ratios, kinds.astype(np.uint8), surprise, paths, size))
        rows = np.concatenate(parts) if parts else np.empty((0, width + size), dtype=np.int64)
        again = _later(rows) | (rows == UNKNOWN_TOKEN).any(axis=1)
        bounds = np.cumsum([0, *(chain.positions for chain in chains)])
        fresh = tuple(
            chain.without(again[low:high])
            for chain, low, high in zip(chains, bounds[:-1], bounds[1:], strict=True)
        )
        scored = np.flatnonzero(~again)
        return cls(fresh, rows[scored, :width], rows[scored, width:], scored, len(rows))

    def without(self, silent: Sequence[NDArray[np.bool_] | None]) -> "Rows":
        """The same messages, whose blocks where `silent` [positions] say nothing; None: no block."""
        chains = [
            chain if own is None else chain.without(own)
            for chain, own in zip(self.chains, silent, strict=True)
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

    def of_messages(self, cells: Cells) -> Iterator[tuple[MarkovChain, Cells]]:
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
