"""A text is read as it was sent and as a reader sees it, and the better reading is corrected for the two."""

import math
import random
from collections.abc import Callable

import pytest
from scipy.stats import binom

from tests.unit.detect_service.callers import CALLERS
from tests.unit.detect_service.held_keys import key_of
from tests.unit.detect_service.test_readings import LETTERS
from ttmark.detect_service.ask import ask_here
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.documents.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.detect_service.normalization.normalizer import TextNormalizer
from ttmark.detect_service.options import DetectionOptions, Mode
from ttmark.detect_service.question import Question
from ttmark.shared.schemas.detection.detect import Document
from ttmark.shared.tokenization import TextTokenizer

WIDE = str.maketrans({letter: chr(ord(letter) + 0xFEE0) for letter in LETTERS})


def after_every_letter(hidden: str) -> Callable[[str], str]:
    return lambda text: "".join(letter + hidden if letter != " " else letter for letter in text)


def instead_of_spaces(blank: str) -> Callable[[str], str]:
    return lambda text: text.replace(" ", blank)


SCRUBS = {
    "doubled spaces": instead_of_spaces("  "),
    "thin and hair spaces": instead_of_spaces("\u2009\u200a"),
    "empty Braille cells": instead_of_spaces("\u2800"),
    "Hangul fillers": instead_of_spaces("\u3164"),
    "half-width fillers beside spaces": instead_of_spaces("\uffa0 "),
    "dots below": after_every_letter("\u0323"),
    "composed dots below": lambda text: text.translate(str.maketrans("aeioutrsdnlkmhb", "ạẹịọụṭṛṣḍṇḷḳṃḥḅ")),
    "marks of other kinds": after_every_letter("\u0353\u033b"),
    "dotless letters among number forms": lambda text: text.translate(str.maketrans("ijcdmlvx", "ıȷⅽⅾⅿⅼⅴⅹ")),
    "soft hyphens": after_every_letter("\u00ad"),
    "tag characters": after_every_letter("\U000e0061"),
    "direction controls": after_every_letter("\u202d\u202c"),
    "control characters": after_every_letter("\x01"),
}


async def test_what_readers_cannot_see_hides_no_watermark(service, mode: Mode) -> None:
    text = service.marked("a-one", tokens=100, spaces="single")
    inputs = [{"id": name, "text": scrub(text)} for name, scrub in {"none": str, **SCRUBS}.items()]
    body = {"inputs": inputs, "keys": ["a-one"], "fpr": 1e-5}
    plain, *scrubbed = await service.results(mode, body)
    assert (plain.verdict, plain.reading) == ("watermarked", "as_sent")
    for one in scrubbed:
        assert (one.id, one.verdict, one.reading) == (one.id, "watermarked", "unwrapped")
        assert one.log10_p == pytest.approx(plain.log10_p + math.log10(2))
        assert one.tokens == plain.tokens
    as_sent = await service.results(mode, {**body, "normalize": False})
    assert [one.id for one in as_sent if one.verdict == "watermarked"] == ["none"]
    assert {(one.reading, one.normalization.undone) for one in as_sent} == {("as_sent", False)}
    assert scrubbed[-1].normalization.undone
    assert scrubbed[-1].normalization.invisible > 50


async def test_a_text_whose_spaces_mean_something_is_found_as_before(service, mode: Mode) -> None:
    text = service.marked("a-one", tokens=400, spaces="double")
    assert TextNormalizer().readings(text)["unwrapped"].text != text
    body = {"inputs": [{"text": text}], "keys": ["a-one"], "evidence": "blocks"}
    (both,) = await service.results(mode, body)
    (as_sent,) = await service.results(mode, {**body, "normalize": False})
    assert (both.verdict, both.reading, as_sent.verdict) == ("watermarked", "as_sent", "watermarked")
    assert both.log10_p == pytest.approx(as_sent.log10_p + math.log10(2))
    assert both.hypotheses == 3 * as_sent.hypotheses
    assert both.evidence == as_sent.evidence


async def test_positions_of_the_normalized_reading_are_those_of_the_text_as_it_was_sent(service) -> None:
    text = service.marked("a-one", tokens=300, spaces="single")
    scrubbed = text.replace(" ", " \u3164 ")
    result = await service.one("localized", scrubbed, keys=["a-one"], evidence="blocks")
    assert (result.tokens, result.segments[0].end_token <= 300) == (300, True)
    for block in result.evidence:
        read = text[block.start_token : block.end_token].rstrip()
        assert scrubbed[block.start_char : block.end_char].rstrip(" \u3164") == read


def backends(tokenizer: TextTokenizer, count: int) -> list[DetectionBackend]:
    generator = random.Random(5)
    keys = [key_of(tokenizer, generator.randbytes(16), scheme="gumbel") for _ in range(count)]
    return [
        DetectionBackend(FixedKeys.of([key]), TokenizerSet([tokenizer]), max_document_tokens=1000)
        for key in keys
    ]


# What readings add is corrected after the mode, and is held to the last digit in each mode above.
@pytest.mark.long
@pytest.mark.parametrize(
    "mode", ["direct", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("aligned", "localized"))]
)
def test_three_readings_give_no_more_false_alarms_than_promised(tokenizer, mode: Mode) -> None:
    generator = random.Random(3)
    texts = ["".join(generator.choices(LETTERS + " ", k=60)) for _ in range(80)]
    documents = [Document(text=text.translate(WIDE).replace("\uff45", "\u2019")) for text in texts]
    log10_p: list[float] = []
    for backend in backends(tokenizer, 16):
        request = DetectionOptions(mode=mode, fpr=0.1, phase=0).request(documents)
        log10_p += [
            one.log10_p or 0.0
            for one in ask_here(Question(request, CALLERS["mine"], "r"), means_of(backend)).results
        ]
    assert len(log10_p) == 1280
    for fpr in (1e-1, 1e-2, 1e-3):
        alarms = sum(one <= math.log10(fpr) for one in log10_p)
        # One right detector in 10,000 would fail, and 99 in 100 that count two readings for three at 10 %.
        assert alarms <= binom.isf(1e-4, len(log10_p), fpr)
