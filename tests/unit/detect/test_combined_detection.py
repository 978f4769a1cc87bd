"""`POST /v1/detect`: one likelihood ratio, through the whole service."""

import math

import numpy as np
import pytest

from ttmark.shared.detection_words import about_words
from ttmark.shared.watermark.likelihood.evidence import detect_likelihood

HUMAN = "it was a cold clear day, and nobody had thought of bringing a second coat for the walk down. "


async def test_a_marked_text_is_found_as_a_whole(service) -> None:
    text = service.marked("a-two", tokens=300)
    result = await service.one("combined", text, keys=["a-one", "a-two"], normalize=False)
    assert (result.verdict, result.scope, result.basis) == ("watermarked", "whole", "watermark")
    assert (result.key.key_id, result.segments, result.marked_share.high) == ("a-two", [], 1.0)
    assert (result.hypotheses, result.reader) == (2, "none")
    key = service.keys["a-two"]
    tokens = service.tokenizer.encode(text)
    alone = detect_likelihood(key.profile.watermark(), key.primary.prf_keys, tokens, rate=1e-5 / 2)
    assert result.log10_p == pytest.approx(alone.log10_p + math.log10(2))
    assert result.log10_e == pytest.approx(alone.log10_e - math.log10(2), abs=1e-6)
    assert result.log10_e < -result.log10_p
    assert "carries our watermark, of our key a-two, version 1" in result.message.explanation


@pytest.mark.parametrize(("tokens", "rate"), [(16, 1e-5), (40, 1e-12)])
async def test_a_short_text_that_is_found_carries_the_mark_all_over(service, tokens, rate) -> None:
    result = await service.one("combined", service.marked("a-one", tokens), keys=["a-one"], fpr=rate)
    assert (result.verdict, result.marked_share.high) == ("watermarked", 1.0)
    assert result.marked_share.estimate > 0.99


async def test_passages_stand_out_of_a_text_by_people(service) -> None:
    marked = service.marked("a-one", tokens=300)
    text = HUMAN * 5 + marked + HUMAN * 5
    result = await service.one("combined", text, keys=["a-one"], evidence="blocks")
    assert (result.verdict, result.scope) == ("watermarked", "passages")
    assert result.segments
    share = result.marked_share
    assert share.estimate == pytest.approx(len(marked) / len(text), abs=0.01)
    assert share.low <= share.estimate <= share.high < 0.3
    assert result.evidence
    assert "passage" in result.message.headline


async def test_two_keys_in_one_text_are_passages_of_each(service) -> None:
    text = service.marked("a-one", tokens=300) + service.marked("a-two", tokens=300)
    result = await service.one("combined", text, keys=["a-one", "a-two"])
    assert result.scope == "passages"
    assert {segment.key.key_id for segment in result.segments} == {"a-one", "a-two"}


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


async def test_a_short_text_is_told_what_is_usual_where_that_was_measured(service) -> None:
    short = await service.one("combined", HUMAN[:7], keys=["a-one"], fpr=1e-12)
    assert short.verdict == "too_short"
    assert short.tokens_typical > 3 * short.tokens_needed
    assert about_words(short.tokens_typical) in short.message.explanation
