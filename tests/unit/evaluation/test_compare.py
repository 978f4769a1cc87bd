"""Two results side by side."""

import pytest

from ttmark.evaluation.report.compare import compare_documents


def test_entries_are_matched_by_their_labels_and_not_by_position() -> None:
    before = {"rows": [{"name": "a", "tokens_per_s": 100.0}, {"name": "b", "tokens_per_s": 50}]}
    after = {"rows": [{"name": "b", "tokens_per_s": 75}, {"name": "a", "tokens_per_s": 100.0}], "new": 1}
    table = compare_documents("A", before, "B", after)
    assert table.rows == (
        ("rows[a].tokens_per_s", "100", "100", "1.000"),
        ("rows[b].tokens_per_s", "50", "75", "1.500"),
    )


def test_documents_without_a_common_figure_are_refused() -> None:
    with pytest.raises(ValueError, match="no figure in common"):
        compare_documents("A", {"x": 1}, "B", {"y": 1})
