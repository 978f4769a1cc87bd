"""The joint distribution of a block against an enumeration, with and without a branch budget."""

from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from itertools import product

import numpy as np
import pytest
import torch

from tests.unit.gen_service.decoding.written import follow
from ttmark.gen_service.decoding.filtered_tokens import Support, Tail
from ttmark.gen_service.decoding.randomness import Draws
from ttmark.gen_service.decoding.request import Marking
from ttmark.gen_service.decoding.tandem_block import BlockBuilder, Reweighter, TandemBlock
from ttmark.shared.watermark.schemes.watermark import Watermark

VOCAB = 6
END = 0
UNLIMITED = 10_000
DRAWS = 4000


@cache
def conditional(path: tuple[int, ...]) -> Support:
    """An arbitrary fixed distribution of the next token, which leaves some tokens out."""
    rng = np.random.default_rng([1, *path])
    probs = rng.dirichlet(np.full(VOCAB, 0.6)) * (rng.random(VOCAB) < 0.8) + 1e-3
    order = np.argsort(-probs)
    return Support(order.astype(np.int64), probs[order] / probs.sum())


@cache
def conditional_with_tail(path: tuple[int, ...]) -> Support:
    """The same distribution, of which the two likeliest tokens are listed."""
    whole = conditional(path)
    row = torch.full((VOCAB,), -torch.inf)
    row[whole.ids] = torch.log(torch.from_numpy(whole.probs)).float()
    beyond = float(whole.probs[2:].sum())
    tail = Tail(beyond, row, peak=float(row.max()), temperature=1.0, window=whole.ids[:2])
    return Support(whole.ids[:2], whole.probs[:2], tail)


def enumerated(size: int, ends: frozenset[int]) -> dict[tuple[int, ...], float]:
    """Mass of every block by the chain rule; a block ends with an end token."""
    mass: dict[tuple[int, ...], float] = defaultdict(float)
    for tokens in product(range(VOCAB), repeat=size):
        probability, path = 1.0, ()
        for token in tokens:
            support = conditional(path)
            probability *= float(support.probs[support.ids == token].sum())
            path = (*path, token)
            if token in ends:
                break
        mass[path] = max(mass[path], probability)
    return dict(mass)


def build(
    size: int,
    ends: frozenset[int],
    seed: int = 0,
    max_branches: int = UNLIMITED,
    max_blocks: int = UNLIMITED,
    support_of: Callable[[tuple[int, ...]], Support] = conditional,
) -> BlockBuilder:
    builder = BlockBuilder(size, ends, Draws(seed), 0, max_branches, max_blocks)
    builder.grow([support_of(())])
    while not builder.complete:
        assert len(builder.frontier) <= max_branches
        builder.grow([support_of(tuple(path)) for path in builder.frontier.tolist()])
    return builder


def joint(builder: BlockBuilder) -> tuple[np.ndarray, np.ndarray]:
    """Blocks [n, block_size] and their probabilities [n]."""
    blocks, mass = (np.concatenate(parts) for parts in zip(*builder.parts(), strict=True))
    return blocks, mass / mass.sum()


def as_dict(builder: BlockBuilder) -> dict[tuple[int, ...], float]:
    blocks, mass = joint(builder)
    return {tuple(t for t in block if t >= 0): m for block, m in zip(blocks.tolist(), mass, strict=True)}


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("ends", [frozenset[int](), frozenset({END}), frozenset({END, 3})])
def test_the_joint_distribution_is_the_product_of_the_conditionals(size: int, ends: frozenset[int]) -> None:
    expected = enumerated(size, ends)
    assert as_dict(build(size, ends)) == pytest.approx(expected)


def test_a_block_that_can_only_end_is_complete_without_probes() -> None:
    builder = BlockBuilder(3, frozenset({END}), Draws(0), 0, UNLIMITED)
    builder.grow([Support(np.array([END]), np.ones(1))])
    assert builder.complete
    assert len(builder.frontier) == 0
    assert joint(builder)[0].tolist() == [[END, -1, -1]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("size", "max_branches", "max_blocks"),
    [
        (2, 1, UNLIMITED),
        (2, 4, UNLIMITED),
        (3, 2, UNLIMITED),
        (1, UNLIMITED, 2),
        (2, UNLIMITED, UNLIMITED),
        (2, UNLIMITED, 5),
        (3, 3, 7),
    ],
)
@pytest.mark.parametrize("support_of", [conditional, conditional_with_tail])
@pytest.mark.parametrize("scheme", ["gumbel", "mcmark"])
def test_marked_blocks_under_a_budget_follow_the_joint_distribution(
    scheme: str,
    size: int,
    max_branches: int,
    max_blocks: int,
    support_of: Callable[[tuple[int, ...]], Support],
) -> None:
    """Chi-square at the 0.001 level over 4,000 requests, each under a key of its own; the seeds are fixed."""
    ends = frozenset({END})
    expected = enumerated(size, ends)
    builders = [build(size, ends, seed, max_branches, max_blocks, support_of) for seed in range(DRAWS)]
    drawn = Counter(under_keys(Watermark(scheme, size), builders))
    assert set(drawn) <= set(expected)
    assert follow(drawn, expected, DRAWS)


@pytest.mark.parametrize(("size", "max_branches"), [(1, UNLIMITED), (2, UNLIMITED), (2, 2), (3, 3)], ids=str)
@pytest.mark.parametrize("support_of", [conditional, conditional_with_tail])
def test_the_key_has_a_choice_in_the_tail_too(
    size: int, max_branches: int, support_of: Callable[[tuple[int, ...]], Support]
) -> None:
    """Every block has rivals, and all of them, each under a key of its own, follow the joint distribution."""
    builders = [build(size, frozenset(), seed, max_branches, 4, support_of) for seed in range(DRAWS)]
    assert {len(joint(builder)[0]) for builder in builders} <= {2, 3, 4}
    drawn = Counter(under_keys(Watermark("gumbel", size), builders))
    assert follow(drawn, enumerated(size, frozenset()), DRAWS)


def under_keys(watermark: Watermark, builders: list[BlockBuilder]) -> list[tuple[int, ...]]:
    """A block of each, drawn under a key of its own."""
    rng = np.random.default_rng(2)
    context = tuple(range(watermark.context_width))
    blocks = [
        TandemBlock(Marking("k", 1, "p", watermark, rng.bytes(16)), context, builder, rng.random())
        for builder in builders
    ]
    drawn = Reweighter().draw(blocks)
    return [drawn[block] for block in blocks]


def test_the_budget_decides_by_the_request_and_not_by_who_asks_again() -> None:
    first, again = (as_dict(build(2, frozenset({END}), seed=4, max_branches=2)) for _ in range(2))
    assert first == again
