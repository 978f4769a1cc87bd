"""The live check against services that answer as they are told to."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from ttmark.services.features.canary.canary import Canary, CanaryMetrics
from ttmark.services.features.canary.settings import CanarySettings
from ttmark.shared.client import Client

Answer = Callable[[httpx.Request], httpx.Response]


def generated(request: httpx.Request) -> httpx.Response:
    mark = {"status": "watermarked", "reasons": {}, "key_id": "main", "blocks": 9, "watermarked_blocks": 9}
    choice = {"index": 0, "text": "generated text"}
    completion = {"id": "c", "created": 1, "model": "m", "choices": [choice], "watermark": mark}
    return httpx.Response(200, json=completion)


def refused(request: httpx.Request) -> httpx.Response:
    return httpx.Response(401, json={"title": "Unauthorized", "detail": "no"})


def verdicts(of_generated: str, of_human: str) -> Answer:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/v1/detect", "it asks what people ask"
        is_generated = json.loads(request.content)["inputs"][0]["text"] == "generated text"
        result: dict[str, Any] = {
            "id": "0",
            "verdict": of_generated if is_generated else of_human,
            "tokens": 300,
            "hypotheses": 1,
            "log10_p": -12.0 if is_generated else -0.3,
        }
        if result["verdict"] == "not_examined":
            result["error"] = {"code": "internal_error", "message": "An error on our side."}
        return httpx.Response(200, json={"results": [result], "skipped_keys": [], "request_id": "r"})

    return answer


@pytest.mark.parametrize(
    ("generation", "detection", "outcome"),
    [
        (generated, verdicts("watermarked", "not_detected"), "ok"),
        (generated, verdicts("not_detected", "not_detected"), "missed"),
        (generated, verdicts("too_short", "not_detected"), "missed"),
        (generated, verdicts("watermarked", "watermarked"), "false_alarm"),
        (generated, verdicts("watermarked", "not_examined"), "detection_failed"),
        (refused, verdicts("watermarked", "not_detected"), "generation_failed"),
        (generated, refused, "detection_failed"),
    ],
)
def test_each_way_a_check_can_end_is_told_apart(generation: Answer, detection: Answer, outcome: str) -> None:
    registry = CollectorRegistry()
    with (
        Client("http://gen", "t", transport=httpx.MockTransport(generation)) as gen,
        Client("http://detect", "t", transport=httpx.MockTransport(detection)) as detect,
    ):
        assert Canary(gen, detect, CanaryMetrics(registry), CanarySettings()).run() == outcome
    assert registry.get_sample_value("ttmark_canary_runs_total", {"outcome": outcome}) == 1
    if outcome == "ok":
        assert registry.get_sample_value("ttmark_canary_log10_p_value", {"text": "generated"}) == -12.0
