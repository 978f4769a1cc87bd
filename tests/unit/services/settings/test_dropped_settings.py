"""Yesterday's variables go through a rolling update; another value than holds now ends the start."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ttmark.detect_service.features.files.text.extraction import ExtractionLimits
from ttmark.detect_service.features.jobs.job_store import LEASE_SECONDS
from ttmark.detect_service.features.jobs.sealed_jobs import JobLimits
from ttmark.detect_service.features.jobs.settings import JobSettings
from ttmark.detect_service.features.public.public_allowance import PublicBudget
from ttmark.detect_service.features.public.settings import PublicSettings
from ttmark.detect_service.features.public.tier import PublicTier
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.gen_service.features.vllm.vllm_settings import VllmSettings
from ttmark.services.cli.main import app
from ttmark.services.composition import detection_service, key_access
from ttmark.services.features.canary import canary
from ttmark.services.settings.unknown_variables import (
    DROPPED,
    Constant,
    check_dropped,
    check_names,
    known_names,
)
from ttmark.services.startup import StartupError
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.http.connections import ConnectionLimits
from ttmark.shared.http.request_body import HttpLimits

EXTRACTION, JOBS, CONNECTIONS = ExtractionLimits(), JobLimits(), ConnectionLimits()
PUBLIC = PublicBudget.of(PublicSettings().public_words_per_day, 1.0)
HOLDS: dict[str, float | bool | str] = {
    "TTMARK_JOB_DOCUMENTS": JOBS.documents,
    "TTMARK_JOB_BYTES": JOBS.body_bytes,
    "TTMARK_JOB_KEEP_SECONDS": JOBS.keep_seconds,
    "TTMARK_JOB_LEASE_SECONDS": LEASE_SECONDS,
    "TTMARK_JOBS_PER_TENANT": JOBS.store.jobs,
    "TTMARK_JOBS_TENANT_BYTES": JobSettings().job_limits().store.tenant_size,
    "TTMARK_PUBLIC_CHARACTERS": PublicTier.characters,
    "TTMARK_PUBLIC_TENANT_WORDS_PER_DAY": PUBLIC.tenant_words,
    "TTMARK_PUBLIC_ADDRESS_WORDS_PER_DAY": PUBLIC.address_words,
    "TTMARK_PUBLIC_ADDRESS_REQUESTS_PER_MINUTE": PUBLIC.address_requests,
    "TTMARK_PUBLIC_ANSWERS": PUBLIC.everybody.limit,
    "TTMARK_PUBLIC_ANSWERS_PER_ASKER": PUBLIC.asker,
    "TTMARK_ANSWERS_WINDOW_SECONDS": PUBLIC.everybody.window_seconds,
    "TTMARK_PUBLIC_VARIANTS": PUBLIC.everybody.limit,
    "TTMARK_PUBLIC_VARIANTS_PER_ASKER": PUBLIC.asker,
    "TTMARK_VARIANTS_PAUSE_SECONDS": PUBLIC.everybody.window_seconds,
    "TTMARK_VARIANTS_WINDOW_SECONDS": PUBLIC.everybody.window_seconds,
    "TTMARK_DOCUMENTS_PER_MINUTE": detection_service._DOCUMENTS_PER_MINUTE,
    "TTMARK_KEY_REFRESH_SECONDS": key_access.KEY_REFRESH_SECONDS,
    "TTMARK_TOKEN_REFRESH_SECONDS": TokenRegistry.__init__.__kwdefaults__["fresh_seconds"],
    "TTMARK_HEADER_SECONDS": CONNECTIONS.header_seconds,
    "TTMARK_BODY_SECONDS": CONNECTIONS.body_seconds,
    "TTMARK_MAX_CONNECTIONS": CONNECTIONS.max_connections,
    "TTMARK_READER_KIND": "ttmark",
    "TTMARK_READING_SHARE": EngineSettings().reading_share,
    "TTMARK_PREFIX_CACHE": EngineSettings().prefix_cache,
    "TTMARK_ADAPTIVE_BRANCHES": False,
    "TTMARK_CANARY_SECONDS": canary.SECONDS,
    "TTMARK_CANARY_TOKENS": canary.TOKENS,
    "TTMARK_CANARY_FPR": canary._FPR,
    "TTMARK_EXTRACT_QUEUE": EXTRACTION.queue,
    "TTMARK_EXTRACT_CPU_SECONDS": EXTRACTION.cpu_seconds,
    "TTMARK_EXTRACT_SECONDS": EXTRACTION.seconds,
    "TTMARK_EXTRACT_MEMORY_BYTES": EXTRACTION.memory_bytes,
    "TTMARK_EXTRACT_TEXT_BYTES": EXTRACTION.text_bytes,
}
"""What holds in the code in place of each setting, where nothing else is set."""
DERIVED = {
    "TTMARK_JOBS_TENANT_BYTES": ("TTMARK_JOBS_BYTES", "1000000000", "500000000"),
    "TTMARK_PUBLIC_TENANT_WORDS_PER_DAY": ("TTMARK_PUBLIC_WORDS_PER_DAY", "2000", "6000"),
    "TTMARK_PUBLIC_ADDRESS_WORDS_PER_DAY": ("TTMARK_PUBLIC_WORDS_PER_DAY", "2000", "200"),
    "TTMARK_READER_KIND": ("TTMARK_READER_TOKENIZER", "/models/one", "vllm"),
}
"""Of each constant that follows from a setting: that one, a value of it, and what follows."""
CONSTANTS = {name: entry for name, entry in DROPPED.items() if isinstance(entry, Constant)}

Told = Callable[[dict[str, str]], list[str]]


def test_no_setting_is_also_dropped() -> None:
    assert known_names() & DROPPED.keys() == set()


@pytest.fixture
def told() -> Told:
    """The lines that a start says about variables."""

    def lines(given: dict[str, str]) -> list[str]:
        said: list[str] = []
        check_dropped(given.keys() & DROPPED.keys(), given, said.append)
        return said

    return lines


def test_the_constants_that_are_told_are_those_that_hold() -> None:
    assert HOLDS.keys() == CONSTANTS.keys()
    for name, entry in CONSTANTS.items():
        assert str(HOLDS[name]).removesuffix(".0").lower() == entry.now({}), name


def test_limits_of_a_request_and_of_both_engines_are_the_same() -> None:
    assert HttpLimits().body_seconds == CONNECTIONS.body_seconds
    vllm, embedded = VllmSettings(), EngineSettings()
    assert (vllm.reading_share, vllm.prefix_cache) == (embedded.reading_share, embedded.prefix_cache)


@pytest.mark.parametrize("name", DERIVED)
def test_a_constant_may_follow_from_a_setting(told: Told, name: str) -> None:
    of, value, follows = DERIVED[name]
    assert told({name: follows, of: value}) != []
    with pytest.raises(StartupError, match=f"{name} is a constant now, {follows}: "):
        told({name: CONSTANTS[name].now({}), of: value})
    assert CONSTANTS[name].now({of: "much"}) in (follows, CONSTANTS[name].now({}))  # its reader tells that


def test_what_a_setting_never_gave_is_no_other_value(told: Told) -> None:
    assert len(told({"TTMARK_JOBS_TENANT_BYTES": "33554432", "TTMARK_JOBS_BYTES": "1000"})) == 1
    with pytest.raises(StartupError, match="TTMARK_JOBS_TENANT_BYTES is a constant now, 500: "):
        told({"TTMARK_JOBS_TENANT_BYTES": "499", "TTMARK_JOBS_BYTES": "1000"})


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


def test_what_ends_the_start_is_told_alone() -> None:
    said: list[str] = []
    given = {"TTMARK_EXTRACT_SECONDS": "31", "TTMARK_QUEUE_KEEP_DAYS": "90", "TTMARK_QUEUE_ITEMS": "7"}
    with pytest.raises(StartupError):
        check_dropped(given, given, said.append)
    assert said == []


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
