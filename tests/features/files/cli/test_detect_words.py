"""What `ttmark detect` says of a finding, and what it does not."""

from functools import partial

import pytest
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from ttmark.detect_service.features.files.commands.detect import show
from ttmark.detect_service.options import DetectionOptions
from ttmark.services.cli import terminal as terminal_module
from ttmark.services.cli.main import app
from ttmark.shared.client import AsyncClient
from ttmark.shared.detection_words import message
from ttmark.shared.schemas.detection.content_provenance import CheckedText, ContentProvenanceCheck
from ttmark.shared.schemas.detection.detect import (
    CombinedRequest,
    CombinedResult,
    DetectedKey,
    DetectionResult,
    Document,
    Verdict,
)


def in_words(result: DetectionResult) -> DetectionResult:
    return result.model_copy(update={"message": message(result, 1e-5)})


def output(verdict: Verdict, capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> str:
    show([in_words(DetectionResult(id="a.txt", verdict=verdict, tokens=9, hypotheses=1))], as_json=as_json)
    return capsys.readouterr().out


def test_a_finding_is_of_passages_that_may_have_been_changed_since(capsys):
    found = output("watermarked", capsys)
    assert "carries our watermark, of one of our keys" in found
    assert "numbers, names and negations may have been changed since." in found


@pytest.mark.parametrize("verdict", ["not_detected", "too_short"])
def test_nothing_is_said_of_passages_where_none_were_found(verdict, capsys):
    assert "passages made" not in output(verdict, capsys)


@pytest.mark.parametrize(("pool_key", "found", "words"), [(None, None, "k v2"), (5, 1, "k v2 #5")])
def test_a_finding_names_the_key_of_a_pool(capsys, pool_key, found, words):
    show([_made_with(pool_key, found)], as_json=False)
    shown = capsys.readouterr().out
    assert words in shown
    assert "Several keys" not in shown
    assert ("#" in shown) == (pool_key is not None)


def test_several_keys_of_a_pool_are_explained_and_a_payload_is_named_as_one(capsys):
    show([_made_with(5, 3)], as_json=False)
    shown = capsys.readouterr().out
    assert "#5 and 2 more" in shown
    assert "a forgery stitched from stolen pieces" in shown
    result = _made_with(5, 1)
    assert result.key is not None
    key = result.key.model_copy(update={"payload": 5})
    show([result.model_copy(update={"key": key})], as_json=False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "payload 5" in shown
    assert "#" not in shown


def _made_with(pool_key: int | None, found: int | None) -> DetectionResult:
    key = DetectedKey(key_id="k", version=2, profile="p", pool_key=pool_key)
    result = DetectionResult(
        id="a", verdict="watermarked", tokens=9, hypotheses=1, key=key, pool_keys_found=found
    )
    return in_words(result)


LONG = "/srv/moderation/queue/2026-11-23/items/0001/quarterly/reports/2026/summary.docx"
BRACKETS = "/srv/[/b]/[red]a.txt"
WIDE = "\u5831\u544a" * 40 + ".docx"


def results(*names: str) -> list[DetectionResult]:
    return [
        in_words(DetectionResult(id=name, verdict="not_detected", tokens=900, hypotheses=1)) for name in names
    ]


@pytest.mark.parametrize("name", [LONG, WIDE])
def test_a_terminal_shows_the_ends_of_names(capsys, monkeypatch, name):
    terminal = partial(Console, force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr(terminal_module, "Console", terminal)
    show(results(name, "a.txt"), as_json=False)
    table = [line for line in capsys.readouterr().out.splitlines() if "900" in line]
    assert len(table) == 2
    assert table[0].split()[1].startswith("\u2026")
    assert table[0].split()[1].endswith(name[-10:])
    assert table[1].split()[1] == "a.txt"
    assert max(map(cell_len, table)) <= 80


def test_what_is_no_terminal_gets_whole_names(capsys: pytest.CaptureFixture[str]) -> None:
    show(results(LONG, WIDE, BRACKETS), as_json=False)
    rows = [line.split()[1] for line in capsys.readouterr().out.splitlines() if "900" in line]
    assert rows == [LONG, WIDE, BRACKETS]


def test_what_is_said_of_several_files_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    show([*results("a.txt", "b.txt", "c.txt"), _made_with(None, None)], as_json=False)
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("None of the keys that were tried was found.") == 1
    assert said.count("This proves nothing.") == 1
    assert "3 files: No watermark found. " in said
    assert "a: Watermark found. " in said


@pytest.mark.parametrize("mode", ["combined", "direct", "aligned", "localized"])
def test_files_and_bulk_rows_are_read_in_both_ways_unless_told_otherwise(mode: str) -> None:
    documents = [Document(text="a")]
    assert DetectionOptions(mode=mode).request(documents).normalize
    assert not DetectionOptions(mode=mode, normalize=False).request(documents).normalize


def test_a_prompt_and_sampling_are_asked_with_each_file(monkeypatch, tmp_path):
    asked = []

    async def answered(_: object, __: bytes, ___: str, request: CombinedRequest) -> ContentProvenanceCheck:
        asked.append(request)
        result = CombinedResult(id="a", verdict="not_detected", tokens=9, hypotheses=1)
        texts = [CheckedText(result=result)]
        return ContentProvenanceCheck(created_at=1, results=[], not_looked_at=[], texts=texts, request_id="r")

    monkeypatch.setattr(AsyncClient, "check_content", answered)
    file = tmp_path / "a.txt"
    file.write_text("It was a cold clear day.")
    options = ["--prompt", "Go on", "--temperature", "0.7", "--top-k", "50", "--min-p", "0.1"]
    said = CliRunner().invoke(app, ["detect", str(file), "--token", "t", *options])
    assert said.exit_code == 0, said.output
    CliRunner().invoke(app, ["detect", str(file), "--token", "t", *options, "--chat"])
    sampling = {"temperature": 0.7, "top_k": 50, "min_p": 0.1}
    talk = [{"role": "user", "content": "Go on"}]
    assert [one.origin for one in asked] == [sampling | {"prompt": "Go on"}, sampling | {"messages": talk}]
    for more in (["--chat"], ["--prompt", "a", "--conversation"], ["--top-p", "0.9", "--mode", "direct"]):
        assert CliRunner().invoke(app, ["detect", str(file), *more]).exit_code == 2
