"""What `ttmark detect` says of a finding, and what it does not."""

import pytest

from ttmark.detect_service.options import DetectionOptions
from ttmark.services.cli.detect import show
from ttmark.shared.schemas.detection import DetectionResult, Document, Verdict


def output(verdict: Verdict, capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> str:
    show([DetectionResult(id="a.txt", verdict=verdict, tokens=9, hypotheses=1)], as_json=as_json)
    return capsys.readouterr().out


def test_a_finding_is_of_passages_that_may_have_been_changed_since(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = output("watermarked", capsys)
    assert "contains passages made with the key" in found
    assert "Numbers, names and negations may have been changed since." in found


@pytest.mark.parametrize("verdict", ["not_detected", "too_short"])
def test_nothing_is_said_of_passages_where_none_were_found(
    verdict: Verdict, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "passages made" not in output(verdict, capsys)


def test_programs_read_json_alone(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = output("watermarked", capsys, as_json=True).splitlines()
    assert DetectionResult.model_validate_json(line).verdict == "watermarked"


@pytest.mark.parametrize("mode", ["direct", "aligned", "localized"])
def test_files_and_bulk_rows_are_read_in_both_ways_unless_told_otherwise(mode: str) -> None:
    documents = [Document(text="a")]
    assert DetectionOptions(mode=mode).request(documents).normalize
    assert not DetectionOptions(mode=mode, normalize=False).request(documents).normalize
