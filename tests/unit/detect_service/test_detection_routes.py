"""`POST /v1/detect` through the whole service."""

import math
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from tests.harness.detection_routes import route_of
from tests.unit.detect_service.conftest import HUMAN
from tests.unit.detect_service.served import served
from ttmark.detect_service.documents.backend import TokenizerSet
from ttmark.shared.detection_words import about_words


async def test_documents_in_which_nothing_is_found_feed_the_null_statistic_by_default(service, mode) -> None:
    await service.one(mode, HUMAN * 4, keys=["a-one"])
    metrics = (await service.client.get("/metrics")).text
    assert f'ttmark_detect_not_detected_p_value_count{{mode="{mode}"}} 1.0' in metrics


async def test_without_keys_all_of_the_tenants_are_tried_and_unreadable_ones_named(service) -> None:
    response = await service.post("/v1/detect", {"inputs": [{"text": service.marked("a-two")}]})
    body = response.json()
    assert body["results"][0]["key"]["key_id"] == "a-two"
    assert body["skipped_keys"] == ["a-foreign"]


async def test_keys_are_listed_without_secrets_and_for_their_tenant_only(service) -> None:
    response = await service.client.get("/v1/keys", headers=service.headers())
    listed = {key["key_id"]: key["tokenizer_available"] for key in response.json()["keys"]}
    assert listed == {"a-foreign": False, "a-one": True, "a-two": True}
    for key in service.keys.values():
        assert key.primary.prf_key.hex() not in response.text


async def test_a_marked_text_is_found_as_a_whole(service) -> None:
    text = service.marked("a-two", tokens=300)
    result = await service.one("combined", text, keys=["a-one", "a-two"], normalize=False)
    assert (result.verdict, result.scope, result.basis) == ("watermarked", "whole", "watermark")
    assert (result.key.key_id, result.segments, result.marked_share.high) == ("a-two", [], 1.0)
    assert (result.hypotheses, result.reader) == (2, "none")
    assert "carries our watermark, of our key a-two, version 1" in result.message.explanation


async def test_passages_stand_out_of_a_text_by_people(service) -> None:
    marked = service.marked("a-one", tokens=300)
    text = HUMAN * 5 + marked + HUMAN * 5
    result = await service.one("combined", text, keys=["a-one"], evidence="blocks")
    assert (result.verdict, result.scope) == ("watermarked", "passages")
    assert result.segments
    share = result.marked_share
    assert share.estimate == pytest.approx(len(marked) / len(text), abs=0.01)
    assert share.low <= share.estimate <= share.high < 0.4  # what may be marked stands ten times in HUMAN
    assert result.evidence
    assert "passage" in result.message.headline


async def test_without_evidence_there_is_a_verdict_and_words_that_name_no_key(service) -> None:
    result = await service.one("combined", service.marked("a-two", tokens=300), "verdict")
    assert result.verdict == "watermarked"
    hidden = (result.p_value, result.key, result.segments, result.scope, result.marked_share, result.weak)
    assert hidden == (None,) * 6
    assert "a-two" not in result.message.model_dump_json()
    assert "one of our keys" in result.message.explanation


async def test_a_verdict_alone_does_not_say_that_evidence_is_weak(service) -> None:
    text = service.marked("a-one", tokens=40)
    for rate in (1e-3, 1e-5, 1e-8, 1e-12):
        full = await service.one("combined", text, keys=["a-one"], fpr=rate)
        if full.verdict == "not_detected":
            expected = full.log10_p <= min(math.log10(rate) + 2.0, -2.0)
            assert full.weak is expected
            assert ("Weak" in full.message.headline) is expected
    verdict = await service.one("combined", text, "verdict", keys=["a-one"], fpr=1e-5)
    assert verdict.weak is None
    assert "Weak" not in verdict.message.headline


async def test_an_empty_text_has_no_words_and_a_rate_of_nothing_is_told_in_a_few(service) -> None:
    empty = await service.one("combined", "")
    assert (empty.verdict, empty.tokens) == ("too_short", 0)
    assert "holds no words" in empty.message.explanation
    for fpr in (0, -1, 1e-300, 0.5, "1e-5"):
        refused = await service.post("/v1/detect", {"inputs": [{"text": "a"}], "fpr": fpr})
        assert (refused.status_code, refused.json()["param"]) == (422, "fpr")
        assert "from 1e-100 to 0.1" in refused.json()["detail"]
        assert len(refused.json()["detail"]) < 120


async def test_a_short_text_is_told_what_is_usual_where_that_was_measured(service) -> None:
    short = await service.one("combined", HUMAN[:7], keys=["a-one"], fpr=1e-12)
    assert short.verdict == "too_short"
    assert short.tokens_typical > 3 * short.tokens_needed
    assert about_words(short.tokens_typical) in short.message.explanation


@pytest.mark.parametrize(
    ("inputs", "keys", "model"),
    [
        ({"text": HUMAN}, None, "mine"),
        ({"token_ids": [1, 2, 3]}, ["a-one", "a-two"], "mine"),
        ({"token_ids": [1, 2, 3]}, None, "several"),
        ({"token_ids": [1, 2, 3]}, ["a-foreign"], ""),
        ({"text": HUMAN}, ["of-nobody"], ""),
    ],
)
async def test_requests_are_timed_by_the_model_whose_keys_are_tried(
    service, mode, inputs, keys, model
) -> None:
    tokenizers = TokenizerSet([service.tokenizer], {service.tokenizer.fingerprint: "mine"})
    backend = replace(service.backend, tokenizers=tokenizers)
    registry = CollectorRegistry()
    async with served(backend, service.authenticate, options={"registry": registry}) as client:
        body = {"inputs": [inputs], "keys": keys}
        await client.post(route_of(mode), json=body, headers=service.headers())
    labels = {"route": route_of(mode), "method": "POST", "model": model}
    assert registry.get_sample_value("ttmark_http_request_duration_seconds_count", labels) == 1
