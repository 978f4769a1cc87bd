"""The doubt about where passages end, and about marked text that nobody sees: coverage, by simulation."""

import numpy as np
import pytest
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.extent import extent, unseen
from ttmark.shared.watermark.detectors.scan import DRIFT_PER_TOKEN, best_peak

SIZE = 2
DOCUMENTS = 60
LEAST = 20.0
"""Score from which on a passage counts as found."""


def scores(
    generator: np.random.Generator, positions: int, start: int, end: int, mean: float
) -> NDArray[np.float64]:
    """Position scores with a marked passage, whose blocks differ in strength, at boundaries [start, end)."""
    values = generator.standard_normal(positions)
    marked = np.arange(start, end - SIZE + 1, SIZE)
    values[marked] += mean * generator.choice([0.4, 1.6], size=marked.size)
    return values


@pytest.mark.parametrize(("n", "start", "end"), [(200, 0, 200), (300, 60, 200), (600, 0, 150)])
@pytest.mark.parametrize("mean", [0.8, 1.4])
def test_the_interval_holds_the_true_length_of_19_passages_in_20(
    n: int, start: int, end: int, mean: float
) -> None:
    generator = np.random.default_rng(4)
    held, widths = [], []
    for _ in range(DOCUMENTS):
        values = scores(generator, n - SIZE + 1, start, end, mean)
        peak = best_peak(values.tolist(), SIZE, DRIFT_PER_TOKEN * SIZE, 0, n)
        if peak.score < LEAST:
            continue
        found = extent(values, SIZE, peak.start, peak.end, low=0, high=n)
        low, high = found.inner[1] - found.inner[0], found.outer[1] - found.outer[0]
        held.append(low <= end - start <= high)
        widths.append((max(0, high) - max(0, low)) / n)
    assert len(held) > DOCUMENTS / 2
    assert np.mean(held) >= 0.9  # 0.95 less two standard errors of so many documents
    assert np.mean(widths) < 0.75  # it says something


def test_the_rest_of_a_text_is_bounded_by_its_mean_score() -> None:
    generator = np.random.default_rng(9)
    shares = [0.0, 0.3, 0.9]
    for share in shares:
        bounds = []
        for _ in range(200):
            values = generator.standard_normal(400)
            marked = np.arange(0, round(400 * share), SIZE)
            values[marked] += 1.0
            bounds.append(unseen(values, SIZE, 1.0))
        assert np.mean(np.array(bounds) >= share) >= 0.93
    assert unseen(np.empty(0), SIZE, 1.0) == 0.0


def test_a_passage_ends_at_its_neighbours() -> None:
    values = scores(np.random.default_rng(2), 199, 0, 200, 3.0)
    found = extent(values, SIZE, 60, 120, low=50, high=130)
    assert (found.outer[0] >= 50, found.outer[1] <= 130) == (True, True)
    assert found.inner[0] >= found.outer[0]
