"""The block of a completion in the making: its joint distribution (Algorithm 1), built level by level.

A complete block is drawn from the reweighted distribution, or from the joint distribution as it is where the
model's own choice has too small a share in it.
"""

import time
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.gen_service.decoding.filtered_tokens import Floats, Ints, Support, Tail, choose
from ttmark.gen_service.decoding.filters import BoundedRows
from ttmark.gen_service.decoding.randomness import Draw, Draws
from ttmark.gen_service.decoding.request import Marking, SequenceFailed, each_or_failed
from ttmark.shared.watermark.prf import key_lanes
from ttmark.shared.watermark.schemes.watermark import Watermark

LEAST_SHARE = 0.25
"""Of the model's own choice in each branch of a block that is marked: docs/adr/0092."""


def least_share(own: torch.Tensor, changed: torch.Tensor, left: BoundedRows | Sequence[Support]) -> float:
    """The least share of the model's own choice in any of the rows.

    In one row it is the sum of min(p, q) over the tokens that the filters leave, divided by their sum of q: p
    is the model's own probability of a token, q the one that the caller's restrictions have made of it, both
    over the whole vocabulary, at temperature 1 and before the filters. If a grammar allows only some
    tokens, the share is what the model gives to these. If only one token is left, nobody chooses, and the
    share is 1.

    Args:
        own: the model's logits [rows, vocab].
        changed: the same after bias, penalties and grammar.
        left: what the filters leave of `changed`.
    """
    if isinstance(left, BoundedRows):
        ids, listed = left.ids, np.arange(left.ids.shape[1]) < left.counts[:, None]
    else:
        ids, listed = _padded([support.ids for support in left])
    open_rows = listed.sum(axis=1) > 1
    if not open_rows.any():
        return 1.0
    places = torch.from_numpy(ids).to(own.device)
    mine, theirs = (_probabilities(logits, places) for logits in (own, changed))
    kept = np.where(listed, np.minimum(mine, theirs), 0.0).sum(axis=1)
    whole = np.where(listed, theirs, 0.0).sum(axis=1)
    return float((kept[open_rows] / whole[open_rows]).min())


def _probabilities(logits: torch.Tensor, ids: torch.Tensor) -> Floats:
    """Of `ids` [rows, width] in the softmax of `logits` [rows, vocab]."""
    whole = logits.float().logsumexp(dim=1, keepdim=True)
    found: Floats = (logits.gather(1, ids).float() - whole).exp().double().cpu().numpy()
    return found


def _padded(rows: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Ids [rows, width] and which of them are there."""
    listed = np.arange(max(map(len, rows))) < np.array([[len(ids)] for ids in rows])
    padded = np.zeros(listed.shape, dtype=np.int64)
    padded[listed] = np.concatenate(rows)
    return padded, listed


MAX_BLOCKS = 4096
"""Blocks that are reweighted together: more than the paper's 50 x 50, and few enough to hash at each step."""

Level = tuple[Ints, Floats]
"""Paths [n, depth] and their mass [n]."""

NO_TOKEN = -1
"""What fills a block up after an end of text."""


class BlockBuilder:
    """The filtered distribution over blocks of `block_size` tokens from one position.

    `grow` is called once per level with the support of every open branch, or `extend` with what `next_levels`
    finds for many builders at once whose supports are bounded; between two levels the branches in
    `frontier` have to be probed. A branch that ends in an end-of-text token is a block of its own, with its
    mass and no probe; in `parts` it is filled up with -1.

    Branch budget: when more than `max_branches` branches are open, the likeliest ones are the head and the
    others the tail. The request's own randomness picks the head with the head's mass, and goes on with it,
    or draws one branch of the tail and goes on with that one alone. The mixture has key-independent weights,
    so what is distortion-free without a budget is distortion-free with it. Likewise at most
    `max_blocks` complete blocks are kept: their tail is split evenly into parts no larger than that, and one
    part is drawn, so that the key has a choice there too. Tokens that a support does not list belong to the
    tail at every level.
    """

    def __init__(
        self,
        block_size: int,
        ends: frozenset[int],
        draws: Draws,
        position: int,
        max_branches: int,
        max_blocks: int = MAX_BLOCKS,
    ) -> None:
        self._block_size = block_size
        self._ends = np.array(sorted(ends), dtype=np.int64)
        self._draws = draws
        self._position = position
        self._max_branches = max_branches
        self._max_blocks = max_blocks
        self.paths: Ints = np.empty((1, 0), dtype=np.int64)  # [open, depth]
        self.mass: Floats = np.ones(1)  # [open]
        self._ended: Ints = np.empty((0, block_size), dtype=np.int64)  # [ended, block_size]
        self._ended_mass: Floats = np.empty(0)  # [ended]

    @property
    def frontier(self) -> Ints:
        """First tokens of the branches to probe next, [branches, depth]; no branches once it is complete."""
        return self.paths[:0] if self._deep else self.paths

    @property
    def depth(self) -> int:
        return int(self.paths.shape[1])

    @property
    def complete(self) -> bool:
        return self._deep or len(self.paths) == 0

    @property
    def _deep(self) -> bool:
        return self.depth == self._block_size

    def grow(self, supports: Sequence[Support]) -> None:
        """Extends every branch of the frontier by its support, one level deeper."""
        counts = [len(support.ids) for support in supports]
        tokens = np.concatenate([support.ids for support in supports])
        probs = np.concatenate([support.probs for support in supports])
        tails = _Tails.of(self.paths, self.mass, supports)
        paths = np.column_stack([np.repeat(self.paths, counts, axis=0), tokens])
        self.extend(paths, np.repeat(self.mass, counts) * probs, tails)

    def extend(self, paths: Ints, mass: Floats, tails: "_Tails | None" = None) -> None:
        """Does what `grow` does, with what `next_levels` found: paths [n, depth + 1] and their mass [n]."""
        self.paths, self.mass = paths, mass
        self._set_ended_apart()
        self._apply_budget(tails or _NO_TAILS)

    def parts(self) -> list[tuple[Ints, Floats]]:
        """Blocks [n, block_size] and their mass [n], the joint distribution up to a factor (Eq. 3).

        In one part, or in two: blocks that an end of text closes come last.
        """
        parts = [(self.paths, self.mass)] if self._deep else []
        return [*parts, (self._ended, self._ended_mass)] if len(self._ended) else parts

    def _set_ended_apart(self) -> None:
        """Takes the branches that an end of text closes before their time out of the paths."""
        if self._deep or not self._ends.size:
            return
        ended = (self.paths[:, -1:] == self._ends).any(axis=1)
        if not ended.any():
            return
        missing = self._block_size - self.depth
        blocks = np.pad(self.paths[ended], ((0, 0), (0, missing)), constant_values=NO_TOKEN)
        self._ended = np.concatenate([self._ended, blocks])
        self._ended_mass = np.concatenate([self._ended_mass, self.mass[ended]])
        self.paths, self.mass = self.paths[~ended], self.mass[~ended]

    def _apply_budget(self, tails: "_Tails") -> None:
        """Keeps the likeliest paths, or one that is drawn from the others, of whole blocks its whole part."""
        limit, width = (self._max_blocks, self._max_blocks) if self._deep else (self._max_branches, 1)
        if len(self.paths) <= limit and not tails.mass.size:
            return
        level = self.depth
        order = np.argsort(-self.mass, kind="stable")
        head, others = order[:limit], order[limit:]
        head_mass = self.mass[head].sum() + self._ended_mass.sum()
        other_mass = np.concatenate([self.mass[others], tails.mass])
        whole = head_mass + other_mass.sum()
        if self._draws.uniform(self._position, Draw.HEAD_OR_TAIL, level) * whole < head_mass:
            self.paths, self.mass = self.paths[head], self.mass[head]
            return
        drawn = choose(other_mass, self._draws.uniform(self._position, Draw.TAIL, level))
        self._ended, self._ended_mass = self._ended[:0], self._ended_mass[:0]
        if drawn < len(others):
            paths, mass = self.paths[others], self.mass[others]
        else:
            paths, mass = tails.listed(drawn - len(others))
            drawn = choose(mass, self._draws.uniform(self._position, Draw.TAIL_TOKEN, level))
        parts = -(-len(mass) // width)
        number = drawn * parts // len(mass)
        part = slice(-(-number * len(mass) // parts), -(-(number + 1) * len(mass) // parts))
        self.paths, self.mass = paths[part], mass[part]
        self._set_ended_apart()


def next_levels(builders: Sequence[BlockBuilder], rows: BoundedRows) -> list[Level]:
    """What `extend` takes, for builders whose frontiers are equally deep: paths and mass of each.

    Args:
        rows: of all branches of the first builder, then of the second, and so on.
    """
    depth = builders[0].depth
    listed = np.arange(rows.ids.shape[1]) < rows.counts[:, None]
    branch = np.repeat(np.arange(len(rows)), rows.counts)
    paths = np.empty((len(branch), depth + 1), dtype=np.int64)
    if depth:
        paths[:, :depth] = np.concatenate([builder.paths for builder in builders])[branch]
    paths[:, depth] = rows.ids[listed]
    mass = np.concatenate([builder.mass for builder in builders])[branch] * rows.probs[listed]
    through = np.cumsum([0, *rows.counts.tolist()])
    branches = np.cumsum([0, *(len(builder.mass) for builder in builders)])
    bounds = pairwise(through[branches].tolist())
    return [(paths[start:stop], mass[start:stop]) for start, stop in bounds]


@dataclass(frozen=True, slots=True)
class _Tails:
    """What the supports of a level do not list: for each branch that has such a tail, its path and mass."""

    paths: Ints  # [tails, depth]
    mass: Floats  # [tails]
    tails: Sequence[Tail]

    @classmethod
    def of(cls, paths: Ints, mass: Floats, supports: Sequence[Support]) -> "_Tails":
        tails = [(branch, each.tail) for branch, each in enumerate(supports) if each.tail is not None]
        branches = [branch for branch, _ in tails]
        shares = np.array([tail.mass for _, tail in tails])
        return cls(paths[branches], mass[branches] * shares, [tail for _, tail in tails])

    def listed(self, index: int) -> Level:
        """The paths of tail number `index`, and their mass up to a factor."""
        tokens, mass = self.tails[index].listed()
        return np.column_stack([np.tile(self.paths[index], (len(tokens), 1)), tokens]), mass


_NO_TAILS = _Tails(np.empty((0, 0), dtype=np.int64), np.empty(0), ())


TokenPath = tuple[int, ...]
"""Tokens of a block, from its first on."""


@dataclass(eq=False, slots=True)
class PlainBlock:
    """A block without watermark, whose tokens are sampled one by one.

    Attributes:
        left: tokens to come.
        opening: whether it belongs to the opening, where the probability of what is drawn counts.
        model_logits: the model's own logits [vocab] after each path, where log probabilities are asked for.
    """

    left: int
    opening: bool = False
    model_logits: dict[TokenPath, torch.Tensor] = field(default_factory=dict)

    @property
    def paths(self) -> list[TokenPath]:
        """After which first tokens of the block the next logits come."""
        return [()]


@dataclass(eq=False, slots=True)
class TandemBlock:
    """A watermarked block, drawn in one go from the joint distribution of its tokens.

    Attributes:
        context: tokens that key the block.
        uniform: the random number that draws the block.
        share: the least in any branch, as far as they are known, of the model's own choice of a token.
        model_logits: as in `PlainBlock`.
    """

    marking: Marking
    context: tuple[int, ...]
    builder: BlockBuilder
    uniform: float
    share: float = 1.0
    model_logits: dict[TokenPath, torch.Tensor] = field(default_factory=dict)

    @property
    def marked(self) -> bool:
        """Whether the key takes part: it does not in what the caller chose."""
        return self.share >= LEAST_SHARE

    @property
    def paths(self) -> list[TokenPath]:
        return [tuple(path) for path in self.builder.frontier.tolist()]


Block = PlainBlock | TandemBlock


class Reweighter:
    """Reweights the joint distributions of complete blocks and draws from them (Algorithm 1, lines 14, 15).

    A block that is not to be marked is drawn from its joint distribution as it is.

    Attributes:
        seconds: spent on joint distributions, PRF and reweighting since the start.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    def draw(self, blocks: Iterable[TandemBlock]) -> dict[TandemBlock, TokenPath | SequenceFailed]:
        """The tokens of every block, cut after an end of text, or why it has none.

        Args:
            blocks: with a complete builder.
        """
        drawn: dict[TandemBlock, TokenPath | SequenceFailed] = {}
        groups: dict[Hashable, list[TandemBlock]] = defaultdict(list)
        for block in blocks:
            groups[_identity(block.marking.watermark)].append(block)
        for group in groups.values():
            tokens = each_or_failed(self._draw_together, group)
            drawn |= zip(group, tokens, strict=True)
        return drawn

    def _draw_together(self, blocks: Sequence[TandemBlock]) -> list[TokenPath]:
        """Tokens of blocks with one and the same watermark."""
        started = time.perf_counter()
        parts = [block.builder.parts() for block in blocks]
        keys = np.stack([key_lanes(block.marking.prf_key) for block in blocks])
        contexts = np.array([block.context for block in blocks], dtype=np.int64)
        sizes = [sum(len(mass) for _, mass in of_block) for of_block in parts]
        offsets = np.cumsum([0, *sizes], dtype=np.int64)
        candidates = np.concatenate([tokens for of_block in parts for tokens, _ in of_block])
        probs = np.concatenate([mass for of_block in parts for _, mass in of_block])
        weighted = blocks[0].marking.watermark.reweight(keys, contexts, candidates, probs, offsets)
        self.seconds += time.perf_counter() - started
        if not np.isfinite(weighted).all():
            raise SequenceFailed("the watermark gave probabilities that are not finite")
        return [
            _tokens(
                candidates[start + choose((weighted if block.marked else probs)[start:stop], block.uniform)]
            )
            for block, (start, stop) in zip(blocks, pairwise(offsets.tolist()), strict=True)
        ]


def _tokens(block: NDArray[np.int64]) -> TokenPath:
    """The tokens of a block [block_size], without what fills it up."""
    return tuple(token for token in block.tolist() if token != NO_TOKEN)


def _identity(watermark: Watermark) -> Hashable:
    """Equal for watermarks that reweight alike, so that they are computed together."""
    parameters = tuple(sorted(watermark.parameters.items()))
    return type(watermark), watermark.scheme, watermark.block_size, watermark.context_width, parameters
