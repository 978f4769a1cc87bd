"""The paper's bounds on z."""

import numpy as np
import pytest

from ttmark.evaluation.entropy import entropy_bits, measure_entropy, strength_bound
from ttmark.evaluation.experiment_cells import SamplingSetting
from ttmark.evaluation.language_model import CausalModel, block_levels
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH

PROMPT, COMPLETION = (5, 9, 300), (77, 12, 400, 31)


def test_bounds_of_equal_chances_of_a_certain_token_and_of_pairs() -> None:
    assert entropy_bits(np.full(8, 1 / 8)) == pytest.approx(3.0)
    assert strength_bound(np.array([1.0])) == 0.0
    generator = np.random.default_rng(9)
    for _ in range(50):
        first = generator.dirichlet(np.full(6, 0.3))
        seconds = generator.dirichlet(np.full(5, 0.3), size=6)
        joint = (first[:, None] * seconds).ravel()
        single = strength_bound(first) + sum(
            p * strength_bound(second) for p, second in zip(first, seconds, strict=True)
        )
        assert strength_bound(joint) >= single / np.sqrt(2) - 1e-12


@pytest.fixture(scope="module")
def model() -> CausalModel:
    return CausalModel(str(DEMO_MODEL_PATH))


def test_the_distribution_of_a_block_is_the_product_along_its_paths(model: CausalModel) -> None:
    setting = SamplingSetting(3, 1.0, 1.0)
    levels = list(block_levels(model, setting, PROMPT, COMPLETION, 3))
    single, pair, triple = (probs for _, probs in levels)
    assert levels[1].paths[0] == [*levels[0].paths[0], levels[1].paths[0][-1]]
    assert [len(probs) for probs in (single, pair, triple)] == [3, 9, 27]
    # the chance of a first token is what its paths have together
    np.testing.assert_allclose(pair.reshape(3, 3).sum(axis=1), single, rtol=1e-12)
    np.testing.assert_allclose(triple.reshape(9, 3).sum(axis=1), pair, rtol=1e-12)
    # one path by hand: greedy sampling leaves a single one, which is certain
    for _, probs in block_levels(model, SamplingSetting(1, 1.0, 1.0), PROMPT, COMPLETION, 2):
        np.testing.assert_array_equal(probs, [1.0])


def test_branches_are_what_the_model_says_of_the_whole_text(model: CausalModel) -> None:
    paths = [[3, 8], [100, 8]]
    branches = model.branch_logits([*PROMPT, *COMPLETION], paths)
    for row, path in zip(branches, paths, strict=True):
        whole = model.logits((), [*PROMPT, *COMPLETION, *path, 0])[-1]
        np.testing.assert_allclose(row.numpy(), whole.numpy(), atol=1e-4)


def test_longer_blocks_allow_more_on_the_demo_model(model: CausalModel) -> None:
    report = measure_entropy(model, SamplingSetting(4, 1.0, 1.0), [(PROMPT, COMPLETION)], 0, 3)
    assert len(report.bounds) == 3
    assert report.candidates.estimate == 4
    assert 1 < report.bound_gain(2) < report.bound_gain(3)
