"""Yesterday's variables go through a rolling update; another value than holds now ends the start."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ttmark.detect_service.extraction import ExtractionLimits
from ttmark.services.cli.main import app
from ttmark.services.settings.dropped_settings import DROPPED, Constant, check_dropped
from ttmark.services.settings.unknown_variables import check_names
from ttmark.services.startup import StartupError

EXTRACTION = ExtractionLimits()
HOLDS: dict[str, float | bool | str] = {
    "TTMARK_EXTRACT_QUEUE": EXTRACTION.queue,
    "TTMARK_EXTRACT_CPU_SECONDS": EXTRACTION.cpu_seconds,
    "TTMARK_EXTRACT_SECONDS": EXTRACTION.seconds,
    "TTMARK_EXTRACT_MEMORY_BYTES": EXTRACTION.memory_bytes,
    "TTMARK_EXTRACT_TEXT_BYTES": EXTRACTION.text_bytes,
}
"""What holds in the code in place of each setting, where nothing else is set."""
CONSTANTS = {name: entry for name, entry in DROPPED.items() if isinstance(entry, Constant)}

Told = Callable[[dict[str, str]], list[str]]


@pytest.fixture
def told() -> Told:
    """The lines that a start says about variables."""

    def lines(given: dict[str, str]) -> list[str]:
        said: list[str] = []
        check_dropped(given, given, said.append)
        return said

    return lines


def test_the_constants_that_are_told_are_those_that_hold() -> None:
    assert HOLDS.keys() == CONSTANTS.keys()
    for name, entry in CONSTANTS.items():
        assert str(HOLDS[name]).removesuffix(".0").lower() == entry.now({}), name


def test_yesterday_s_variables_at_their_defaults_are_one_line(told: Told) -> None:
    given = {name: CONSTANTS[name].now({}) if name in CONSTANTS else "0" for name in DROPPED}
    (line,) = told(given)
    assert line.startswith("not read any more, which changes nothing (docs/operations/upgrade.md): ")
    assert line.partition("): ")[2].split(", ") == sorted(DROPPED)


@pytest.mark.parametrize("value", ["30", "30.0", " 3e1 "])
def test_a_value_is_the_constant_however_it_is_written(told: Told, value: str) -> None:
    assert len(told({"TTMARK_EXTRACT_SECONDS": value})) == 1


@pytest.mark.parametrize("value", ["31", "nan", "hunter2", "30s"])
def test_another_value_ends_the_start_and_is_not_repeated(told: Told, value: str) -> None:
    with pytest.raises(StartupError) as ended:
        told({"TTMARK_EXTRACT_SECONDS": value, "TTMARK_EXTRACT_QUEUE": "16"})
    said = str(ended.value)
    assert said.startswith("TTMARK_EXTRACT_SECONDS is a constant now, 30: remove it (save larger files as")
    assert value not in said.replace("30:", "")
    assert "QUEUE" not in said


def test_all_other_values_are_told_together(told: Told) -> None:
    with pytest.raises(StartupError) as ended:
        told(dict.fromkeys(CONSTANTS, "-7"))
    assert re.findall(r"(TTMARK_\w+) is a constant now", str(ended.value)) == sorted(CONSTANTS)


def test_a_gone_feature_that_was_on_has_a_line_and_the_start_goes_on(told: Told) -> None:
    given = {"TTMARK_QUEUE_KEEP_DAYS": "90", "TTMARK_QUEUE_ITEMS": "7", "TTMARK_CASES_KEEP_DAYS": "0"}
    queue, others = told(given)
    assert queue.startswith("TTMARK_QUEUE_KEEP_DAYS is not read any more: there is no team queue")
    assert others.endswith(": TTMARK_CASES_KEEP_DAYS, TTMARK_QUEUE_ITEMS")


def test_nothing_is_said_of_what_is_left_out_and_of_settings_that_there_are(told: Told) -> None:
    assert told({}) == []
    assert told({"TTMARK_EXTRACT_SECONDS": " ", "TTMARK_QUEUE_KEEP_DAYS": ""}) == []


def test_every_command_says_it_on_standard_error_and_goes_on(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TTMARK_KEK", "01" * 32)
    monkeypatch.setenv("ttmark_extract_seconds", "30")
    done = CliRunner().invoke(app, ["tokens", "create"])
    assert (done.exit_code, done.stderr.count("\n")) == (0, 1)
    assert done.stderr.startswith("ttmark: not read any more, which changes nothing (docs/operations/")
    monkeypatch.setenv("ttmark_extract_seconds", "31")
    done = CliRunner().invoke(app, ["tokens", "create"])
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("ttmark: TTMARK_EXTRACT_SECONDS is a constant now, 30: remove it")


def test_a_mistyped_name_is_told_before_anything_is_said_of_dropped_ones(capsys) -> None:
    with pytest.raises(StartupError, match="TTMARK_LABLE is no setting"):
        check_names({"TTMARK_EXTRACT_SECONDS": "30", "TTMARK_LABLE": "eu"})
    assert capsys.readouterr().err == ""
