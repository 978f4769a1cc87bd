"""The simulated language model as a source of texts."""

import numpy as np
import pytest
import torch

from ttmark.evaluation.experiment_cells import SETTINGS, Cell, Setting
from ttmark.evaluation.language_model import supports
from ttmark.evaluation.run_folder import Completion
from ttmark.evaluation.simulated import CANDIDATES, SimulatedModel, SimulatedSource
from ttmark.shared.watermark import detect_direct

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


@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_its_texts_carry_the_watermark_of_their_own_keys_and_plain_ones_none(block_size: int) -> None:
    cell = Cell("synthid", block_size, SETTING, 120)
    watermark = cell.watermark()
    marked, plain = texts(cell, 4), texts(cell.unmarked(), 4)
    assert all(len(text.token_ids) == 120 for text in [*marked, *plain])
    z = [
        [detect_direct(watermark, cell.key(0, text.index), text.token_ids).z for text in group]
        for group in (marked, plain)
    ]
    assert np.mean(z[0]) > 2.0 + abs(np.mean(z[1]))


def test_a_text_is_made_again_from_its_cell_and_number() -> None:
    cell = Cell("gumbel", 2, SETTING, 30)
    first, again = texts(cell, 3), texts(cell, 3)
    assert [text.token_ids for text in first] == [text.token_ids for text in again]
    assert len({text.token_ids for text in first}) == 3
