"""`POST /v1/detect/aligned` through the whole service."""

from itertools import pairwise

FPR = 1e-2


async def test_a_text_with_an_insertion_is_found_by_alignment_and_not_at_fixed_boundaries(service) -> None:
    text = service.marked("a-one", tokens=300)
    body = {"inputs": [{"text": text[:5] + "q" + text[5:]}], "keys": ["a-one"], "fpr": FPR}
    (aligned,) = await service.results("aligned", body)
    (direct,) = await service.results("direct", {**body, "phase": 0})
    assert (aligned.verdict, aligned.key.key_id) == ("watermarked", "a-one")
    assert direct.verdict == "not_detected"


async def test_the_evidence_of_an_edited_text_follows_the_alignment(service) -> None:
    text = service.marked("a-one", tokens=200)
    edited = text[:101] + "q" + text[101:]
    result = await service.one("aligned", edited, keys=["a-one"], fpr=FPR, evidence="blocks")
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


async def test_a_text_without_a_scored_block_is_too_short(service) -> None:
    texts = ["", "a", "abcd", "abcde"]
    body = {"inputs": [{"text": text} for text in texts], "keys": ["a-one"]}
    for text, result in zip(texts, await service.results("aligned", body), strict=True):
        assert (result.verdict, result.scored_blocks) == ("too_short", 0)
        assert result.tokens_needed > len(text)
