"""Letters, marks and odd characters: read as the specification says, with a way back to the text as sent."""

import json
import random
import unicodedata

import pytest

from tests.harness.golden import GOLDEN
from tests.harness.odd_texts import assigned, marks_of_each_class, odd_text, table_letters
from tests.harness.spec_detector.normalisation import normalised
from ttmark.detect_service.letters import letters_of
from ttmark.detect_service.normalization import NormalizedText, TextNormalizer
from ttmark.detect_service.normalization.marks import letters_marked_below

NORMALIZER = TextNormalizer()
SANSKRIT = "In Sanskrit ṛ, ṝ, ḷ and ḹ are vocalic; ṭ, ḍ, ṇ and ṣ are retroflex."
_TABLE = json.loads((GOLDEN / "texts.json").read_text())["look_alikes"]
LOOK_ALIKES = dict(zip(_TABLE[::2], _TABLE[1::2], strict=True))


def check(text: str) -> NormalizedText:
    """Reads a text, and holds it against the specification and its places against the text."""
    found = NORMALIZER.normalize(text)
    assert found.text == normalised(text, LOOK_ALIKES), ascii(text)
    spans = [found.original_span(at, at + 1) for at in range(len(found.text))]
    assert spans == sorted(spans)
    assert all(0 <= start < end <= len(text) and end == start + 1 for start, end in spans), ascii(text)
    for character, (start, _) in zip(found.text, spans, strict=True):
        assert _stands_for(character, text[start]), (ascii(text), character, start)
    letters_of(text, lambda one: NORMALIZER.normalize(one).text)
    return found


def _stands_for(plain: str, sent: str) -> bool:
    """Whether a rule may have made `plain` of `sent`: itself, white space, ASCII, or a part of it."""
    if plain == sent or (plain in " \n" and (sent.isspace() or sent in "\u2800\u3164\uffa0")):
        return True
    parts = set(unicodedata.normalize("NFD", sent)) | set(unicodedata.normalize("NFKD", sent))
    return not sent.isascii() and (plain.isascii() or set(unicodedata.normalize("NFD", plain)) <= parts)


@pytest.mark.parametrize("text", ["ḹ ạ", SANSKRIT])
def test_a_letter_that_becomes_two_characters_keeps_the_places(text: str) -> None:
    found = check(text)
    assert "l\u0304" in found.text
    place = found.text.index("l\u0304")
    sent = text.index("ḹ")
    assert found.original_span(place, place + 1) == (sent, sent + 1)
    assert found.original_span(place, place + 2) == (sent, sent + 1)
    assert found.original_span(place + 2, len(found.text)) == (sent + 1, len(text))


def test_without_its_mark_below_a_letter_is_spelt_as_if_it_had_never_had_it() -> None:
    for letter, plain in letters_marked_below().items():
        base, *marks = unicodedata.normalize("NFD", letter)
        others = "".join(mark for mark in marks if unicodedata.combining(mark) != 220)
        assert plain == unicodedata.normalize("NFC", base + others)


@pytest.mark.parametrize("beside", ["{}", "x{} ạẹ", "{}\u0323\u0301 ạ", "z\u0304{}é"])
def test_every_letter_of_every_table_is_read_as_specified(beside: str) -> None:
    for letter in table_letters():
        check(beside.format(letter))


@pytest.mark.parametrize("step", [397, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("others", ["ạẹịọụ" * 25, ""], ids=["mostly below", "as it is"])
def test_every_character_is_read_as_specified_beside_marks_of_each_class(step: int, others: str) -> None:
    for character in assigned()[::step]:
        beside = (f"{character}{mark}a{mark}{character}" for mark in marks_of_each_class())
        check("x ".join(beside) + others)


@pytest.mark.parametrize("texts", [1_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_random_texts_are_read_as_specified(texts: int) -> None:
    generator = random.Random(32)
    for _ in range(texts):
        # What was assigned after Python's data were made is known to one of the two readers alone.
        check(odd_text(generator, generator.randrange(1, 60), without=["unassigned"]))


async def test_a_mark_is_found_and_placed_behind_a_letter_that_becomes_two_characters(service) -> None:
    text = service.marked("a-one", 400)
    dotted = text.translate(str.maketrans("aeiou", "ạẹịọụ"))
    first = text.index("l")
    sent = dotted[:first] + "ḹ" + dotted[first + 1 :]
    body = {"inputs": [{"text": sent}], "keys": ["a-one"], "evidence": "blocks"}
    for mode in ("combined", "direct", "aligned", "localized"):
        (result,) = await service.results(mode, body)
        assert (result.verdict, result.reading) == ("watermarked", "normalized")
        behind = [block for block in result.evidence or () if (block.start_char or 0) > first]
        assert len(behind) > 50
        for block in behind:  # three bytes and as many tokens where the marked text has a letter of one
            assert (block.start_char, block.end_char) == (block.start_token - 2, block.end_token - 2)
        if mode == "localized":
            (passage,) = result.segments or ()
            assert len(text) - 20 < (passage.end_char or 0) <= len(sent)
