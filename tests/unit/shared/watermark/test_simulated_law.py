"""A scheme that gives no law has one from its own reweighting."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from ttmark.shared.watermark.ragged_arrays import Segments
from ttmark.shared.watermark.schemes.base import Scheme, simulated_law
from ttmark.shared.watermark.schemes.mcmark import MCMark
from ttmark.shared.watermark.schemes.registry import build_scheme, scheme_names

PROBS = np.array([0.03, 0.1, 0.3, 0.65, 1.0])


def nats(scheme: Scheme, truth: NDArray[np.float64], law: NDArray[np.float64]) -> NDArray[np.float64]:
    """Evidence of a marked block by `law` [P, cells], where `truth` says how its score is distributed [P]."""
    null = scheme.law(np.ones(1))[0]
    shares = 0.03 + 0.97 * np.divide(law, null, out=np.ones_like(law), where=null > 0.0)
    evidence: NDArray[np.float64] = np.sum(truth * np.log(shares), axis=1)
    return evidence


@pytest.mark.parametrize("name", scheme_names())
def test_it_says_nearly_what_the_closed_law_says(name: str) -> None:
    """The closed law is of more rivals than any text has: what is left is what fewer rivals cost."""
    scheme = build_scheme(name, {})
    closed, simulated = scheme.law(PROBS), simulated_law(scheme, PROBS)
    np.testing.assert_allclose(simulated.sum(axis=1), 1.0)
    assert np.all(nats(scheme, closed, simulated)[:-1] >= 0.8 * nats(scheme, closed, closed)[:-1])
    np.testing.assert_allclose(simulated[-1], closed[-1], atol=1e-12)  # a certain block has the null
    top = np.flatnonzero(closed[-1] > 0.0)[-1]
    assert simulated[1, top] > closed[-1, top]  # though perhaps no draw had this score


def test_it_is_the_same_every_time() -> None:
    scheme = build_scheme("synthid", {})
    np.testing.assert_array_equal(simulated_law(scheme, PROBS), simulated_law(scheme, PROBS))


def by_enumeration(scheme: MCMark, p: float, rivals: int, draws: int) -> NDArray[np.float64]:
    """The law of a block of probability p beside equal rivals, over all targets and some channels [cells]."""
    rng = np.random.default_rng(11)
    targets = np.array(list(product(range(scheme.channels), repeat=scheme.layers)))
    # A word has its digits above its lowest bit, the first layer's last.
    context = (targets @ scheme.channels ** np.arange(scheme.layers) << 1)[:, None]
    probs = np.full(rivals + 1, (1 - p) / rivals)
    probs[0] = p
    law = np.zeros(scheme.cells.count)
    for _ in range(draws):
        words = np.tile(rng.integers(0, 2**63, (rivals + 1, 1)), (len(targets), 1))
        segments = Segments(np.arange(len(targets) + 1) * (rivals + 1))
        after = scheme.reweight(np.tile(probs, len(targets)), words, context, segments)[:: rivals + 1]
        hits = scheme.score(words[:: rivals + 1], context).astype(np.int64)
        law += np.bincount(hits, weights=after / p, minlength=law.size)
    return law / law.sum()


@pytest.mark.parametrize("p", [0.03, 0.3])
def test_the_simulated_law_is_what_mcmark_does_beside_as_many_rivals(p: float) -> None:
    scheme = MCMark(layers=2, channels=8)
    exact, found = by_enumeration(scheme, p, 32, 200), simulated_law(scheme, np.array([p]))[0]
    np.testing.assert_allclose(found @ np.arange(3), exact @ np.arange(3), rtol=0.06)
