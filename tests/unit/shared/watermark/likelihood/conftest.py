"""Small tables and slow, obvious references of the likelihood ratio."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ttmark.shared.watermark.likelihood.forward_backward import Passes, PassKernels, find_kernels
from ttmark.shared.watermark.likelihood.forward_backward_numpy import NumpyPasses
from ttmark.shared.watermark.likelihood.hidden_markov_model import (
    POINTS,
    MarkovChain,
    Mixtures,
    Path,
    Ratios,
    as_table,
)

Floats = np.ndarray[Any, np.dtype[np.float64]]


@pytest.fixture(name="mixtures", scope="session")
def _mixtures() -> Mixtures:
    """Three classes of blocks, of any weights."""
    rng = np.random.default_rng(0)
    count = len(POINTS)
    return Mixtures(rng.dirichlet(np.ones(count)), np.array([-3.0, -1.0]), rng.dirichlet(np.ones(count), 3))


@pytest.fixture(name="passes", scope="session", params=["compiled", "numpy"])
def _passes(request: pytest.FixtureRequest) -> Passes:
    if request.param == "numpy":
        return NumpyPasses()
    return compiled()


def compiled() -> PassKernels:
    """The kernels, or a skipped test."""
    found = find_kernels()
    if found is None:
        pytest.skip("no C compiler")
    return found


def random_chain(
    ratios: Ratios, positions: int, tokens: int, paths: tuple[Path, ...], seed: int
) -> MarkovChain:
    """A text of all classes of blocks, whose surprise comes and goes."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, ratios.ratios.shape[1], positions).astype(np.uint8)
    return MarkovChain(ratios, kinds, rng.random(positions) * 0.9, as_table(paths), tokens)


def enumerated(chain: MarkovChain, path: Path, row: Floats) -> list[tuple[float, list[str]]]:
    """Every path through a text with its prior times ratios, and what it does at each token."""

    def steps(at: int, state: str, mass: float, done: list[str]) -> Iterator[tuple[float, list[str]]]:
        if at >= chain.positions:
            yield mass, done
            return
        x = float(chain.surprise[at]) if path.by_surprise else 0.0
        leave = path.leave + (1 - path.leave) * x
        enter, find = path.enter * (1 - x), path.find * (1 - x)
        if state == "inside":
            begin = (1 - leave) + leave * ((1 - path.lose) * enter + path.lose * find)
            gap, away = leave * (1 - path.lose) * (1 - enter), leave * path.lose * (1 - find)
        elif state == "gap":
            begin, gap, away = enter, 1 - enter, 0.0
        else:
            begin, gap, away = find, 0.0, 1 - find
        ratio = float(chain.ratios.ratios[path.strength, chain.kinds[at], row[at]])
        block = ["begin", *["within"] * (chain.tokens - 1)]
        yield from steps(at + chain.tokens, "inside", mass * begin * ratio, [*done, *block])
        yield from steps(at + 1, "gap", mass * gap, [*done, "gap"])
        yield from steps(at + 1, "away", mass * away, [*done, "away"])

    return [*steps(0, "away", path.away, []), *steps(0, "gap", 1 - path.away, [])]
