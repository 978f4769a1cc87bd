"""Entropy along texts."""

import numpy as np
import pytest

from ttmark.evaluation.cli.app import entropy_bits, entropy_note, measure_entropy
from ttmark.evaluation.experiment_cells import SamplingSetting
from ttmark.evaluation.language_model import CausalModel
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH

PROMPT, COMPLETION = (5, 9, 300), (77, 12, 400, 31)


@pytest.fixture(scope="module")
def model() -> CausalModel:
    return CausalModel(str(DEMO_MODEL_PATH))


def test_entropy_is_that_of_what_the_filters_leave(model: CausalModel) -> None:
    assert entropy_bits(np.full(8, 1 / 8)) == pytest.approx(3.0)
    report = measure_entropy(model, SamplingSetting(4, 1.0, 1.0), [(PROMPT, COMPLETION)] * 2)
    assert report.tokens == 2 * len(COMPLETION)
    assert report.candidates.estimate == 4
    assert 0 < report.bits.estimate < 2
    assert measure_entropy(model, SamplingSetting(1, 1.0, 1.0), [(PROMPT, COMPLETION)]).bits.estimate == 0
    assert entropy_note(report).startswith(f"Entropy {report.bits.estimate:.2f} bits per token")
