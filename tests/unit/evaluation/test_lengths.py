"""Documents of any length, as `ttmark eval core` makes and examines them."""

import numpy as np
import pytest

from ttmark.evaluation.core.lengths import (
    KEY,
    PASSAGE,
    detectors,
    long_rates_table,
    marked_documents,
    short_table,
)
from ttmark.shared.watermark import Watermark, key_lanes


@pytest.mark.parametrize("mode", ["direct", "aligned", "scan"])
def test_a_marked_document_of_12_000_tokens_is_found_at_1e_5(mode):
    watermark = Watermark("synthid", 2)
    marked = marked_documents(watermark, KEY, 1, 12_000, seed=0)[0]
    assert detectors(watermark)[mode](marked) < -5.0
    assert detectors(watermark)[mode](marked[::-1]) > -5.0


@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_blocks_of_marked_documents_are_the_better_of_two(block_size):
    """Their z has the mean of the larger of two normal variables, 1 / sqrt(pi)."""
    watermark = Watermark("synthid", block_size)
    for text in marked_documents(watermark, KEY, 4, PASSAGE, seed=1):
        starts = np.arange(watermark.warmup_blocks * block_size, PASSAGE, block_size)
        contexts = text[starts[:, None] + np.arange(-watermark.context_width, 0)]
        blocks = text[starts[:, None] + np.arange(block_size)]
        z = watermark.standardize(watermark.score(key_lanes(KEY), contexts, blocks))
        assert abs(z.mean() - np.pi**-0.5) < 4.0 / np.sqrt(starts.size)


def test_tables_have_a_row_for_each_length_and_mode(monkeypatch):
    monkeypatch.setattr("ttmark.evaluation.core.lengths.SHORT", (12, 40))
    monkeypatch.setattr("ttmark.evaluation.core.lengths.LONG", (300,))
    monkeypatch.setattr("ttmark.evaluation.core.lengths.LANES", 64)
    assert [row[2] for row in short_table(["synthid"], [2], 64, 1).rows] == ["12", "40"]
    modes = [row[2] for row in long_rates_table(["synthid"], [2], 64, 1).rows]
    assert modes == ["direct", "aligned", "scan", "waterseeker"]
