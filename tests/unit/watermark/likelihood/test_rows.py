"""Which blocks count, once, and under which class."""

import numpy as np
import pytest

from ttmark.shared.watermark import Watermark, key_lanes
from ttmark.shared.watermark.likelihood.hidden_markov_model import NEUTRAL, PLAIN, Mixtures, Ratios, Rows
from ttmark.shared.watermark.likelihood.reading import Reading

PAIRS = Watermark("gumbel", 2, 2)


@pytest.fixture(name="ratios")
def _ratios(mixtures: Mixtures) -> Ratios:
    return Ratios.of(PAIRS, mixtures)


def kinds(rows: Rows, message: int = 0) -> list[int]:
    return rows.chains[message].kinds.tolist()


def test_every_position_with_a_context_and_a_whole_block_counts(ratios: Ratios) -> None:
    rows = Rows.of(PAIRS, ratios, [range(10)])
    assert kinds(rows) == [PLAIN] * 7
    assert rows.contexts[0].tolist() == [0, 1]
    assert rows.blocks[-1].tolist() == [8, 9]


def test_a_block_that_was_there_after_the_same_context_says_nothing_and_a_loop_is_read_once(
    ratios: Ratios,
) -> None:
    rows = Rows.of(PAIRS, ratios, [[1, 2, 3, 4, 9, 1, 2, 3, 4, 5]])
    assert kinds(rows)[5] == NEUTRAL
    assert kinds(rows).count(NEUTRAL) == 1
    assert rows.scored.tolist() == [0, 1, 2, 3, 4, 6]
    rows = Rows.of(PAIRS, ratios, [[1, 2, 3] * 500])
    assert rows.scored.size == 3


def test_a_context_that_was_there_at_the_same_phase_says_less(ratios: Ratios) -> None:
    same = Rows.of(PAIRS, ratios, [[1, 2, 3, 4, 1, 2, 5, 6]])
    other = Rows.of(PAIRS, ratios, [[1, 2, 3, 4, 9, 1, 2, 5, 6]])
    spent = int(ratios.spent(np.array([PLAIN]))[0])
    assert kinds(same)[4] == spent
    assert spent not in kinds(other)


def test_messages_are_numbered_together_and_contexts_cross_none(ratios: Ratios) -> None:
    rows = Rows.of(PAIRS, ratios, [[1, 2, 3, 4, 5], [], [7], [1, 2, 3, 4, 6]])
    assert [chain.positions for chain in rows.chains] == [2, 0, 0, 2]
    assert kinds(rows, 3) == [NEUTRAL, PLAIN]
    assert rows.contexts.tolist() == [[1, 2], [2, 3], [2, 3]]
    rows = Rows.of(PAIRS, ratios, [[1, 2, 3, 4], [1, 2, 5, 6]])
    assert kinds(rows, 1) == [PLAIN]


def test_a_reader_puts_blocks_into_its_classes(ratios: Ratios) -> None:
    reading = Reading(np.array([0.0, 0.0, -2.0, -2.0, -0.1, -0.1, -1.0, -0.5]))
    rows = Rows.of(PAIRS, ratios, [range(8)], [reading])
    blocks = [-4.0, -2.1, -0.2, -1.1, -1.5]
    assert kinds(rows) == (PLAIN + 1 + np.searchsorted([-3.0, -1.0], blocks)).tolist()
    assert len(rows.chains[0].paths) == 12


def test_a_reading_of_another_text_is_refused(ratios: Ratios) -> None:
    with pytest.raises(ValueError, match="a reading of 3 tokens for 4"):
        Rows.of(PAIRS, ratios, [range(4)], [Reading(np.zeros(3))])


def test_cells_are_those_of_the_scores_under_each_key(ratios: Ratios) -> None:
    tokens = np.random.default_rng(0).integers(0, 6, 60)
    rows, keys = Rows.of(PAIRS, ratios, [tokens[:30], tokens[30:]]), [bytes([i] * 16) for i in range(5)]
    found = np.concatenate([cells for _, cells in rows.cells_under_each(PAIRS, keys)])
    assert found.shape == (5, 27 + 27)
    for key, cells in zip(keys, found, strict=True):
        scores = PAIRS.score(key_lanes(key), rows.contexts, rows.blocks)
        assert np.array_equal(cells[rows.scored], PAIRS.cells.of(scores))
    parts = list(rows.of_messages(found))
    assert np.array_equal(np.concatenate([cells for _, cells in parts], axis=1), found)
