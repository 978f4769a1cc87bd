"""`POST /v1/detect/localized` through the whole service."""

import numpy as np
import pytest

FPR = 1e-2


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
    body = {"inputs": [{"text": document}], "keys": ["a-one"], "fpr": FPR, "method": method}
    (result,) = await service.results("localized", body)
    assert result.verdict == "watermarked"
    (segment,) = result.segments
    assert marks(segment, 801, 801 + len(span))
    assert segment.log10_e_value <= -2


async def test_spans_of_two_keys_are_attributed_to_each(service, human: str) -> None:
    one, two = service.marked("a-one", tokens=300), service.marked("a-two", tokens=300)
    document = human[:501] + one + human[501:1000] + two + human[1000:1500]
    body = {"inputs": [{"text": document}], "keys": ["a-one", "a-two"], "fpr": FPR, "evidence": "blocks"}
    (result,) = await service.results("localized", body)
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


async def test_a_text_of_no_key_has_no_segments_and_without_evidence_none_are_shown(service, human):
    (result,) = await service.results("localized", {"inputs": [{"text": human}], "keys": ["a-one"]})
    assert (result.verdict, result.segments, result.key) == ("not_detected", [], None)
    document = human[:300] + service.marked("a-one", tokens=300) + human[300:600]
    body = {"inputs": [{"text": document}], "keys": ["a-one"], "fpr": FPR}
    (result,) = await service.results("localized", body, "verdict")
    assert (result.verdict, result.segments, result.key) == ("watermarked", None, None)


async def test_an_unknown_method_is_named(service) -> None:
    response = await service.post("/v1/detect/localized", {"inputs": [{"text": "a"}], "method": "guess"})
    assert response.status_code == 422
    assert response.json()["param"] == "method"
