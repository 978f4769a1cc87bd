"""Latencies by model, under our names and under OpenTelemetry's."""

from contextlib import suppress
from typing import Any

import httpx
import pytest

from tests.contract.openai.composed import BODIES
from tests.contract.openai.fake_generator import MODEL
from tests.harness.waiting import eventually
from ttmark.gen_service.decoding.request import SequenceFailed
from ttmark.gen_service.engine.errors import Draining, OutOfTime, Overloaded

OURS = ("completion_duration", "time_to_first_token", "time_per_output_token")
THEIRS = ("request_duration", "time_to_first_token", "time_per_output_token")
Counts = dict[str, float]


def counted(service: Any, route: str = "completions", error: str = "") -> Counts:
    """How many times of completions of the model were recorded, by histogram, and those of HTTP requests."""
    kind = "text_completion" if route == "completions" else "chat"
    theirs = {
        "gen_ai_operation_name": kind, "gen_ai_provider_name": "ttmark", "gen_ai_request_model": MODEL,
        "error_type": error,
    }  # fmt: skip
    http = {"route": f"/v1/{route}", "method": "POST", "model": MODEL}
    histograms = {
        **{f"ttmark_gen_{name}_seconds_count": {"model": MODEL} for name in OURS},
        **{f"gen_ai_server_{name}_seconds_count": theirs for name in THEIRS},
        "ttmark_http_request_duration_seconds_count": http,
    }
    return {
        name: service.registry.get_sample_value(name, labels) or 0.0 for name, labels in histograms.items()
    }


def more(service: Any, before: Counts, **where: str) -> list[float]:
    """How many more times there are than before, in the order of OURS, of THEIRS, and of HTTP requests."""
    return [count - before[name] for name, count in counted(service, **where).items()]


@pytest.mark.parametrize("route", [*BODIES, "readings"])
def test_each_completion_is_timed_under_both_names_and_each_request_by_its_model(fake, route):
    before = counted(fake, route)
    if route == "readings":
        fake.answer(route, "reader", texts=["abc", "def"])
        assert more(fake, before, route=route) == [0, 0, 0, 0, 0, 0, 1]
    else:
        several = {} if route == "responses" else {"n": 2}
        fake.answer(route, **several)
        choices = several.get("n", 1)
        assert more(fake, before, route=route) == [choices] * 6 + [1]


def test_bounds_are_those_of_the_conventions(fake: Any) -> None:
    fake.answer("completions")
    bounds: dict[str, list[float]] = {}
    for family in fake.registry.collect():
        if family.name.startswith("gen_ai_server_"):
            found = {float(each.labels["le"]) for each in family.samples if "le" in each.labels}
            bounds[family.name] = sorted(found)[:-1]
    assert bounds == {
        "gen_ai_server_request_duration_seconds": [
            0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92
        ],
        "gen_ai_server_time_per_output_token_seconds": [
            0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5
        ],
        "gen_ai_server_time_to_first_token_seconds": [
            0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (SequenceFailed("NaN"), "generation_failed"),
        (OutOfTime("late"), "deadline_exceeded"),
        (RuntimeError("secret"), "_OTHER"),
    ],
)
def test_a_failure_has_a_kind_and_times_of_tokens_in_no_convention(fake, trouble, code):
    fake.generator.failure = trouble
    before = [counted(fake, error=error) for error in (code, "")]
    assert fake.post("completions").status_code >= 500
    assert more(fake, before[0], error=code)[3:6] == [1, 0, 0]
    assert more(fake, before[1])[3:6] == [0, 0, 0]


def test_who_leaves_is_no_good_end(fake: Any) -> None:
    fake.generator.pause = 0.1
    before = [counted(fake, error=error) for error in ("cancelled", "")]
    body = {"model": MODEL, "stream": True} | BODIES["completions"]
    with (
        suppress(httpx.ReadTimeout),
        fake.http().stream("POST", "/v1/completions", json=body, timeout=0.25) as answer,
    ):
        next(answer.iter_raw())
    eventually(lambda: more(fake, before[0], error="cancelled")[3] >= 1)
    assert more(fake, before[0], error="cancelled")[3:6] == [1, 0, 0]
    assert more(fake, before[1])[3:6] == [0, 0, 0]


@pytest.mark.parametrize(("refusal", "status"), [(Overloaded(1), 429), (Draining("stopping"), 503)])
def test_what_is_turned_away_at_once_does_not_make_completions_look_fast(fake, refusal, status):
    fake.generator.refusal = refusal
    before = counted(fake)
    assert fake.post("completions").status_code == status
    assert more(fake, before)[:6] == [0] * 6


def test_a_model_that_only_a_client_names_is_no_label(fake: Any) -> None:
    for route in BODIES:
        assert fake.post(route, model="invented").status_code == 404
    assert fake.post("readings", "reader", model="invented", texts=["a"]).status_code == 404
    assert "invented" not in fake.http().get("/metrics").text
