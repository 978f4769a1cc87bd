"""`POST /v1/detect` and the paper's three detectors through the whole service."""

import math
import random
from dataclasses import replace
from string import ascii_letters

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from tests.unit.detect_service.conftest import HUMAN
from tests.unit.detect_service.served import served
from ttmark.detect_service.documents.backend import TokenizerSet
from ttmark.shared.detection_words import about_words


async def test_a_marked_text_is_attributed_to_its_key_among_all_keys_and_to_no_other(service) -> None:
    text = service.marked("a-two")
    result = await service.one("direct", text, keys=["a-one", "a-two"], normalize=False)
    assert (result.verdict, result.key.key_id, result.key.version) == ("watermarked", "a-two", 1)
    assert (result.key.pool_key, result.pool_keys_found) == (None, None)
    assert result.p_value <= 1e-5
    assert result.hypotheses == 4  # two keys, two phases of blocks of two
    other = await service.one("direct", text, keys=["a-one"], normalize=False)
    assert (other.verdict, other.key) == ("not_detected", None)


async def test_token_ids_give_the_same_answer_as_their_text(service) -> None:
    text = service.marked("a-one")
    both = [{"id": "d", "text": text}, {"id": "d", "token_ids": service.tokenizer.encode(text)}]
    from_text, from_ids = await service.results("direct", {"inputs": both, "keys": ["a-one"], "phase": 0})
    assert from_text.normalization is not None
    assert from_text.hypotheses == 3 * from_ids.hypotheses
    alike = {"normalization": None, "hypotheses": from_ids.hypotheses}
    assert from_ids == from_text.model_copy(update=alike)


async def test_without_a_phase_text_is_read_with_any_and_token_ids_with_0(service) -> None:
    text = service.marked("a-one", tokens=400)[1:]
    inputs = [{"text": text}, {"token_ids": service.tokenizer.encode(text)}]
    found, missed = ("watermarked", 2), ("not_detected", 1)  # a text counts them for each reading
    for options, expected in (
        ({}, [found, missed]),
        ({"phase": None}, [found, missed]),
        ({"phase": 0}, [missed, missed]),
        ({"phase": "any"}, [found, found]),
    ):
        answers = await service.results("direct", {"inputs": inputs, "keys": ["a-one"], **options})
        counted = [(one.verdict, one.hypotheses // (3 if one.normalization else 1)) for one in answers]
        assert counted == expected


async def test_a_text_is_long_enough_when_one_phase_is_whichever_scores_best(service) -> None:
    options = {"keys": ["a-one"], "fpr": 1e-30}
    short = await service.one("direct", HUMAN[:8], **options)
    letters = random.Random(4)
    texts = ["".join(letters.choices(ascii_letters, k=short.tokens_typical)) for _ in range(60)]
    answers = await service.results("direct", {"inputs": [{"text": text} for text in texts], **options})
    assert {answer.verdict for answer in answers} == {"not_detected"}


async def test_documents_in_which_nothing_is_found_feed_the_null_statistic_by_default(service) -> None:
    await service.one("direct", HUMAN * 4, keys=["a-one"])
    metrics = (await service.client.get("/metrics")).text
    assert 'ttmark_detect_not_detected_p_value_count{mode="direct"} 1.0' in metrics


async def test_block_evidence_names_the_characters_of_each_block(service) -> None:
    text = service.marked("a-one", tokens=60)
    result = await service.one("direct", text, keys=["a-one"], evidence="blocks")
    assert len(result.evidence) == result.scored_blocks
    first = result.evidence[0]
    assert (first.start_token, first.end_token) == (4, 6)
    assert text[first.start_char : first.end_char] == text[4:6]


async def test_without_keys_all_of_the_tenants_are_tried_and_unreadable_ones_named(service) -> None:
    response = await service.direct({"inputs": [{"text": service.marked("a-two")}]})
    body = response.json()
    assert body["results"][0]["key"]["key_id"] == "a-two"
    assert body["skipped_keys"] == ["a-foreign"]


async def test_keys_are_listed_without_secrets_and_for_their_tenant_only(service) -> None:
    response = await service.client.get("/v1/keys", headers=service.headers())
    listed = {key["key_id"]: key["tokenizer_available"] for key in response.json()["keys"]}
    assert listed == {"a-foreign": False, "a-one": True, "a-two": True}
    for key in service.keys.values():
        assert key.primary.prf_key.hex() not in response.text


FPR = 1e-2


async def test_the_evidence_is_scored_with_the_beta_that_was_asked_for(service) -> None:
    text = service.marked("a-one", tokens=200)
    edited = text[:101] + "q" + text[101:-1]
    body = {"inputs": [{"text": edited}], "keys": ["a-one"], "fpr": FPR, "evidence": "blocks"}
    (usual,) = await service.results("aligned", body)
    (dear,) = await service.results("aligned", {**body, "beta": 100})
    # A skipped token pays for itself at the usual price, never at this one.
    assert {block.start_token % 2 for block in usual.evidence} == {0, 1}
    assert len({block.start_token % 2 for block in dear.evidence}) == 1


@pytest.fixture
def human() -> str:
    """Letters that no key drew."""
    generator = np.random.default_rng(11)
    return "".join(generator.choice(list("abcdefghijklmnopqrstuvwxyz .,"), size=2_000))


def marks(segment, start: int, end: int) -> bool:
    """Whether a segment covers 9 tenths of the characters start..end, and more of them than of others."""
    common = max(0, min(segment.end_char, end) - max(segment.start_char, start))
    return common > 0.9 * (end - start) and common > 0.5 * (segment.end_char - segment.start_char)


@pytest.mark.parametrize("method", ["scan", "waterseeker"])
async def test_a_watermarked_span_in_a_long_text_is_found_with_its_characters(service, human, method):
    span = service.marked("a-one", tokens=300)
    document = human[:801] + span + human[801:1601]
    result = await service.one("localized", document, keys=["a-one"], fpr=FPR, method=method)
    assert result.verdict == "watermarked"
    (segment,) = result.segments
    assert marks(segment, 801, 801 + len(span))
    assert segment.log10_e_value <= -2


async def test_spans_of_two_keys_are_attributed_to_each(service, human: str) -> None:
    one, two = service.marked("a-one", tokens=300), service.marked("a-two", tokens=300)
    document = human[:501] + one + human[501:1000] + two + human[1000:1500]
    result = await service.one("localized", document, keys=["a-one", "a-two"], fpr=FPR, evidence="blocks")
    assert [segment.key.key_id for segment in result.segments] == ["a-one", "a-two"]
    assert marks(result.segments[0], 501, 801)
    assert marks(result.segments[1], 1300, 1600)
    for segment in result.segments:
        scores = [
            block.score
            for block in result.evidence
            if segment.start_token <= block.start_token and block.end_token <= segment.end_token
        ]
        assert np.mean(scores) > 0.4


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


async def test_the_evidence_follows_the_text_over_an_inserted_word(service) -> None:
    """Read at one boundary, all that follows the word would look like text without a watermark."""
    tokens = service.tokenizer.encode(service.marked("a-one", tokens=400))
    edited = [*tokens[:251], tokens[0], *tokens[251:]]
    body = {"inputs": [{"token_ids": edited}], "keys": ["a-one"], "evidence": "blocks"}
    after = []
    for mode in ("direct", "combined"):
        (result,) = await service.results(mode, body)
        assert result.verdict == "watermarked"
        after.append(np.mean([block.score for block in result.evidence if block.start_token > 260]))
    assert after[0] < 0.5 < 1.0 < after[1]


async def test_an_empty_text_has_no_words_and_a_rate_of_nothing_is_told_in_a_few(service) -> None:
    for body in ({"inputs": [{"text": ""}]}, {"inputs": [{"text": ""}], "conversation": True}):
        (result,) = (await service.post("/v1/detect", body)).json()["results"]
        assert (result["verdict"], result["tokens"]) == ("too_short", 0)
        assert "holds no words" in result["message"]["explanation"]
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
async def test_requests_are_timed_by_the_model_whose_keys_are_tried(service, inputs, keys, model) -> None:
    tokenizers = TokenizerSet([service.tokenizer], {service.tokenizer.fingerprint: "mine"})
    backend = replace(service.backend, tokenizers=tokenizers)
    for path in ("/v1/detect", "/v1/detect/direct"):
        registry = CollectorRegistry()
        async with served(backend, service.authenticate, options={"registry": registry}) as client:
            body = {"inputs": [inputs], "keys": keys}
            await client.post(path, json=body, headers=service.headers())
        labels = {"route": path, "method": "POST", "model": model}
        assert registry.get_sample_value("ttmark_http_request_duration_seconds_count", labels) == 1
