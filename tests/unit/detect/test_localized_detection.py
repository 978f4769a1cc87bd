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


async def test_a_text_of_no_key_has_no_segments(service, human):
    result = await service.one("localized", human, keys=["a-one"])
    assert (result.verdict, result.segments, result.key) == ("not_detected", [], None)
