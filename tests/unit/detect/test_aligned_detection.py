"""`POST /v1/detect/aligned` through the whole service."""

from itertools import pairwise

import pytest

FPR = 1e-2


async def test_a_text_with_an_insertion_is_found_by_alignment_and_not_at_fixed_boundaries(service) -> None:
    text = service.marked("a-one", tokens=300)
    body = {"inputs": [{"text": text[:5] + "q" + text[5:]}], "keys": ["a-one"], "fpr": FPR}
    (aligned,) = await service.results("aligned", body)
    (direct,) = await service.results("direct", {**body, "phase": 0})
    assert aligned.verdict == "watermarked"
    assert aligned.key.key_id == "a-one"
    assert direct.verdict == "not_detected"


async def test_the_key_that_made_an_edited_text_is_named_among_several(service) -> None:
    text = "qq" + service.marked("a-two", tokens=300)
    body = {"inputs": [{"text": text}], "keys": ["a-one", "a-two"], "fpr": FPR, "normalize": False}
    (result,) = await service.results("aligned", body)
    assert result.hypotheses == 2
    assert result.key.key_id == "a-two"


async def test_the_evidence_of_an_edited_text_follows_the_alignment(service) -> None:
    text = service.marked("a-one", tokens=200)
    edited = text[:101] + "q" + text[101:]
    body = {"inputs": [{"text": edited}], "keys": ["a-one"], "fpr": FPR, "evidence": "blocks"}
    (result,) = await service.results("aligned", body)
    starts = [block.start_token for block in result.evidence]
    assert all(b - a >= 2 for a, b in pairwise(starts))
    assert {start % 2 for start in starts if start < 96} == {0}
    assert {start % 2 for start in starts if start > 110} == {1}
    assert sum(block.score for block in result.evidence) / len(starts) > 0.5


async def test_the_evidence_is_scored_with_the_beta_that_was_asked_for(service) -> None:
    text = service.marked("a-one", tokens=200)
    edited = text[:101] + "q" + text[101:-1]
    body = {"inputs": [{"text": edited}], "keys": ["a-one"], "fpr": FPR, "evidence": "blocks"}
    (usual,) = await service.results("aligned", body)
    (dear,) = await service.results("aligned", {**body, "beta": 100})
    # A skipped token pays for itself at the usual price, never at this one.
    assert {block.start_token % 2 for block in usual.evidence} == {0, 1}
    assert len({block.start_token % 2 for block in dear.evidence}) == 1


@pytest.mark.parametrize("text", ["", "a", "abcd", "abcde"])
async def test_a_text_without_a_scored_block_is_too_short(service, text: str) -> None:
    (result,) = await service.results("aligned", {"inputs": [{"text": text}], "keys": ["a-one"]})
    assert (result.verdict, result.scored_blocks) == ("too_short", 0)
    assert result.tokens_needed > len(text)


@pytest.mark.parametrize("beta", [-1, 101, "five"])
async def test_a_bad_penalty_is_named(service, beta: object) -> None:
    response = await service.post("/v1/detect/aligned", {"inputs": [{"text": "a"}], "beta": beta})
    assert response.status_code == 422
    assert response.json()["param"] == "beta"
