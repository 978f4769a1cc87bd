"""ROUGE and BLEU of texts that the user brings."""

from pathlib import Path

import pytest

from ttmark.evaluation.reference_scores import pairs_table, read_pairs, score_pairs


def test_equal_texts_score_fully_and_unrelated_ones_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(
        '{"system": "a", "candidate": "the cat sat on the mat", "reference": "the cat sat on the mat"}\n'
        '{"system": "b", "candidate": "nothing in common", "reference": "the cat sat on the mat"}\n'
    )
    same, other = score_pairs(read_pairs(path))
    assert same.bleu == pytest.approx(100.0)
    assert same.rouge["rougeL"].estimate == 1.0
    assert other.rouge["rouge1"].estimate == 0.0
    assert [row[0] for row in pairs_table([same, other]).rows] == ["a", "b"]


@pytest.mark.parametrize("line", ["", "[]", '{"candidate": "x"}', "{"])
def test_a_file_without_pairs_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(line)
    with pytest.raises(ValueError, match=r"pair|line 1"):
        read_pairs(path)
