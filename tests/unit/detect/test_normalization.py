"""Tricks with characters are counted, undone on request, and positions stay those of the original."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detect_service.normalization import TextNormalizer

NORMALIZER = TextNormalizer()


@pytest.mark.parametrize(
    ("text", "plain", "counts"),
    [
        ("plain text\n", "plain text\n", (0, 0, 0)),
        ("h\u0435llo w\u043erld", "hello world", (0, 2, 0)),
        ("zero\u200bwidth \u2060joined\ufeff", "zerowidth joined", (3, 0, 0)),
        ("one\u00a0two\u2009three", "one two three", (0, 0, 2)),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd", (0, 0, 3)),
        ("\U0001d5f5\U0001d5f2\U0001d5f9\U0001d5f9\U0001d5fc", "hello", (0, 5, 0)),
        ("I\u0399\u0406", "III", (0, 2, 0)),
    ],
)
def test_tricks_are_undone_and_counted(text: str, plain: str, counts: tuple[int, int, int]) -> None:
    normalized = NORMALIZER.normalize(text)
    assert normalized.text == plain
    assert tuple(normalized.counts) == counts


@pytest.mark.parametrize(
    "text",
    [
        "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440",
        "\u03b1-helix, 5 \u00b5m, na\u00efve, stra\u00dfe, k\u0131ta",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f 1\ufe0f\u20e3",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "e\u0301",
    ],
)
def test_other_scripts_and_emoji_stay_as_they_are(text: str) -> None:
    assert NORMALIZER.normalize(text).text == text


@given(st.text(alphabet="ab \r\n\u200b\u00a0\u0435\u2028\U0001f600\U0001d5f5"))
def test_every_kept_character_maps_to_one_original_character(text: str) -> None:
    normalized = NORMALIZER.normalize(text)
    spans = [normalized.original_span(at, at + 1) for at in range(len(normalized.text))]
    assert all(end - start == 1 for start, end in spans)
    assert spans == sorted(spans)
    for kept, (start, _) in zip(normalized.text, spans, strict=True):
        assert kept == text[start] or not text[start].isascii() or text[start] == "\r"
    removed = len(text) - len(normalized.text)
    assert removed <= normalized.counts.invisible + normalized.counts.white_space


async def test_a_hidden_watermark_is_found_when_normalisation_is_asked_for(service) -> None:
    text = service.marked("a-one", tokens=300)
    hidden = "\u200b".join(text[start : start + 5] for start in range(0, len(text), 5)).replace("a", "\u0430")
    body = {"inputs": [{"text": hidden}], "keys": ["a-one"], "evidence": "blocks"}
    (left,) = await service.results("direct", body)
    (undone,) = await service.results("direct", {**body, "normalize": True})
    assert left.verdict == "not_detected"
    assert left.normalization is not None
    assert left.normalization.invisible > 50
    assert not left.normalization.undone
    assert undone.verdict == "watermarked"
    assert undone.normalization is not None
    assert undone.normalization.undone
    assert undone.evidence is not None
    block = undone.evidence[40]
    assert (block.start_token, text[block.start_token : block.end_token]) == (
        block.start_token,
        hidden[block.start_char : block.end_char].replace("\u200b", "").replace("\u0430", "a"),
    )
