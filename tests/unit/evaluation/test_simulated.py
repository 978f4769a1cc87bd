"""The simulated language model as a source of texts."""

import numpy as np
import pytest
import torch

from tests.harness.simulated_model import (
    CANDIDATES,
    SimulatedModel,
    SimulatedSource,
    block_distribution,
    supports,
)
from ttmark.evaluation.experiment_cells import SETTINGS, Cell, SamplingSetting, Setting
from ttmark.evaluation.run_folder import Completion

pytestmark = pytest.mark.long

SETTING = SETTINGS[Setting.DEFAULT]


def texts(cell: Cell, count: int) -> list[Completion]:
    found: list[Completion] = []
    SimulatedSource().generate(cell, range(count), 0, found.append)
    return found


def test_every_step_is_a_distribution_over_different_candidates() -> None:
    paths = [[token] for token in range(200)]
    logits = SimulatedModel().branch_logits([7, 1, 2], paths)
    assert (torch.isfinite(logits).sum(dim=1) == CANDIDATES).all()
    np.testing.assert_allclose(logits.exp().sum(dim=1), 1.0, rtol=1e-5)
    confident = [len(support.ids) <= 5 for support in supports(logits, SETTING)]
    assert 0.2 < np.mean(confident) < 0.98


def test_a_step_is_the_same_whichever_way_it_is_asked_for() -> None:
    model = SimulatedModel()
    whole = model.logits((3,), [10, 20, 30])
    assert torch.equal(whole[2:], model.branch_logits([3, 10], [[20]]))
    assert torch.equal(whole[2:], model.branch_logits([3, 10, 20], [[]]))
    assert not torch.equal(whole[2:], model.branch_logits([4, 10, 20], [[]]))


def test_the_distribution_of_a_block_is_the_product_along_its_paths() -> None:
    model, text, setting = SimulatedModel(), (7, 1, 2), SamplingSetting(3, 1.0, 1.0)
    single, pair, triple = (block_distribution(model, setting, text, size) for size in (1, 2, 3))
    assert [len(probs) for _, probs in (single, pair, triple)] == [3, 9, 27]
    assert [path[:1] for path in pair[0][::3]] == single[0]
    # the chance of a first token is what its paths have together
    np.testing.assert_allclose(pair[1].reshape(3, 3).sum(axis=1), single[1], rtol=1e-12)
    np.testing.assert_allclose(triple[1].reshape(9, 3).sum(axis=1), pair[1], rtol=1e-12)
    # greedy sampling leaves a single path, which is certain
    assert block_distribution(model, SamplingSetting(1, 1.0, 1.0), text, 2)[1].tolist() == [1.0]
