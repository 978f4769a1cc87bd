"""Answers in each language: they say the same in each, and no sentence is left out."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, get_args

import pytest
from babel import Locale
from babel.numbers import format_decimal

from ttmark.shared.detection_words import about_words, message, public_message
from ttmark.shared.languages.words import LANGUAGES, preferred_words, words_of
from ttmark.shared.schemas.detection.detect import (
    AskedBefore,
    CombinedResult,
    DetectedKey,
    DetectionResult,
    MarkedShare,
    Message,
    Segment,
    Voice,
)

OTHERS = [language for language in LANGUAGES if language != "en"]
HEADLINES = {
    "de": "Wasserzeichen gefunden",
    "es": "Marca de agua encontrada",
    "fr": "Filigrane trouvé",
    "pt": "Marca-d’água encontrada",
}
Sentence = str | dict[str, str]


@pytest.fixture
def catalogues() -> Traversable:
    return files("ttmark.shared.languages")


def catalogue(catalogues: Traversable, language: str) -> Any:
    return json.loads(catalogues.joinpath(f"{language}.json").read_text(encoding="utf-8"))


def forms(sentence: Sentence) -> dict[str, str]:
    return {"": sentence} if isinstance(sentence, str) else sentence


def placeholders(sentence: str) -> set[str]:
    return set(re.findall(r"\{(\w+)", sentence))


@pytest.mark.parametrize("language", OTHERS)
def test_a_catalogue_has_the_sentences_and_placeholders_of_the_english_one(catalogues, language):
    """A sentence of four words or more is alike in two languages by oversight alone."""
    translated, english = catalogue(catalogues, language), catalogue(catalogues, "en")
    assert list(translated) == list(english)
    for name, sentence in english.items():
        wanted = set().union(*map(placeholders, forms(sentence).values()))
        for form, words in forms(translated[name]).items():
            spelt = {"count"} & wanted if form == "one" else set()  # "in one passage"
            assert placeholders(words) | spelt == wanted, (name, form)
            few = len(re.sub(r"\{\w+\}", "", words).split()) < 4
            assert few or words not in forms(sentence).values(), (name, form)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_counted_sentence_has_the_plural_forms_of_its_language(catalogues, language):
    counted = {name for name, sentence in catalogue(catalogues, "en").items() if isinstance(sentence, dict)}
    assert counted
    for name, sentence in catalogue(catalogues, language).items():
        needed = {*Locale(language).plural_form.tags, "other"} if name in counted else {""}
        assert forms(sentence).keys() == needed, name


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_number_has_the_right_form_and_is_grouped_as_the_language_does(catalogues, language):
    rule, words = Locale(language).plural_form, words_of(language)
    lengths = forms(catalogue(catalogues, language)["length"])
    for number in (*range(1, 1100), 10_000, 99_999, 1_000_000, 1_000_001, 2_000_000, 3_500_000):
        said = words.say("length", count=number)
        assert said == lengths[rule(number)].format(count=words.number(number)), number
    for number in (7, 999, 10_000, 1_234_567):
        assert words.number(number) == format_decimal(number, locale=language)


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        (None, "en"),
        ("", "en"),
        ("*", "en"),
        ("ja, zh;q=0.5", "en"),
        ("de", "de"),
        ("DE-at", "de"),
        ("fr-CA, fr;q=0.9, en;q=0.8", "fr"),
        ("en-GB, de;q=0.9", "en"),
        ("ja, pt;q=0.5, es;q=0.7", "es"),
        ("de;q=0, fr;q=0.1", "fr"),
        ("de; q = 0.2, es;q=nan, fr;q=2, pt;q=", "de"),
        ("x," * 5_000 + "de", "en"),
    ],
)
def test_the_language_is_the_client_s_first_that_there_is(accepted: str | None, language: str) -> None:
    assert preferred_words(accepted).language == language


def results() -> Iterator[DetectionResult]:
    """Results whose words take every way through the catalogue."""
    key = DetectedKey(key_id="press", version=3, profile="p", pool_key=2)
    other = DetectedKey(key_id="desk", version=4, profile="p", payload=17)
    passage = Segment(start_token=0, end_token=40, log10_e_value=-9.0, key=key)
    fields: dict[str, Any] = {"id": "a", "tokens": 20_000, "hypotheses": 1}
    unsure = passage.model_copy(update={"key": other, "log10_e_value": -2.0})
    for segments in ([], [passage], [unsure], [passage, unsure, unsure]):
        for low, high in ((0.31, 0.76), (0.31, 1.0), (0.01, 0.4), (0.0, 1.0), (0.96, 1.0)):
            for log10_p in (None, -5.5, -41.0):
                yield CombinedResult(
                    verdict="watermarked",
                    key=key,
                    segments=segments,
                    log10_p=log10_p,
                    pool_keys_found=2,
                    marked_share=MarkedShare(estimate=low, low=low, high=high),
                    **fields,
                )
    before = AskedBefore(
        verdict="watermarked", at=datetime(2026, 3, 4, 5, 6, tzinfo=UTC).timestamp(), tokens=40
    )
    yield from (DetectionResult(verdict="watermarked", voice=voice, **fields) for voice in get_args(Voice))
    yield CombinedResult(verdict="not_detected", weak=True, log10_p=-3.4, asked_before=before, **fields)
    yield DetectionResult(verdict="not_detected", **fields)
    yield DetectionResult(verdict="too_short", tokens_typical=300, **fields)
    yield DetectionResult(verdict="too_short", tokens_typical=30_000, **fields)
    yield DetectionResult(verdict="too_short", tokens_typical=300, **(fields | {"tokens": 0}))
    yield DetectionResult(verdict="not_examined", **fields)
    yield DetectionResult(verdict="no_verdict", **fields)


def facts(said: Message) -> list[str]:
    """What each language has to name: numbers, and names of keys. How they are written is the language's."""
    text = said.explanation.replace("\u202f", "").replace("\u00a0", "")
    text = re.sub(r"(\d\d)[./](\d\d)[./](\d{4})", r"\3-\2-\1", text)
    text = re.sub(r"(?<=\d)[.,](?=\d{3})", "", text)
    return sorted(re.findall(r"\d+(?:-\d+-\d+)?[⁰¹²³⁴⁵⁶⁷⁸⁹]*|press|desk", text))


@pytest.mark.parametrize("language", OTHERS)
def test_each_language_names_the_same_numbers_and_keys_as_english(language: str) -> None:
    words = words_of(language)
    for result in results():
        for say in (message, public_message):
            said, english = say(result, 1e-5, words), say(result, 1e-5)
            assert (said.language, english.language) == (language, None)
            assert facts(said) == facts(english)
            assert said.headline != english.headline
            assert said.caution != english.caution


async def detected(service: Any, body: dict[str, Any], accepted: str | None) -> Any:
    headers = service.headers() | ({} if accepted is None else {"Accept-Language": accepted})
    response = await service.client.post("/v1/detect", json=body, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()["results"]


@pytest.mark.parametrize("language", OTHERS)
async def test_a_request_is_answered_in_its_language(service: Any, language: str) -> None:
    body = {"inputs": [{"text": service.marked("a-one", 400)}]}
    [result] = await detected(service, body, f"{language}-XX, en;q=0.5")
    assert result["message"]["headline"].startswith(HEADLINES[language])
    assert result["message"]["language"] == language


async def test_without_a_language_that_there_is_the_answer_is_in_english_as_ever(service: Any) -> None:
    body = {"inputs": [{"text": "a line"}, {"text": service.marked("a-one", 400)}]}
    usual = await detected(service, body, None)
    assert usual[1]["message"]["headline"].startswith("Watermark found")
    assert set(usual[1]["message"]) == {"headline", "explanation", "caution"}
    for accepted in ("ja", "*", "en-GB, de;q=0.9"):
        assert await detected(service, body, accepted) == usual


KEY = DetectedKey(key_id="k", version=1, profile="p")
PASSAGE = Segment(start_token=0, end_token=40, log10_e_value=-9.0, key=KEY)


def explained(low=None, high=None, **fields) -> str:
    share = low if low is None else MarkedShare(estimate=(low + high) / 2, low=low, high=high)
    result = CombinedResult(
        id="a", verdict="watermarked", tokens=99, hypotheses=16, marked_share=share, **fields
    )
    return message(result, 1e-5).explanation


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.3, 0.76, "Passages that carry it hold 30 % to 76 % of the text."),
        (0.45, 1.0, "Passages that carry it hold at least 45 % of the text."),
        (0.94, 1.0, "Passages that carry it hold at least 94 % of the text. We cannot say which parts"),
        (0.95, 1.0, "All of the text carries it, or nearly all. The answer is held"),
        (0.02, 0.4, "Passages that carry it hold at most 40 % of the text."),
        (0.0, 1.0, "How much of the text carries the mark cannot be told."),
    ],
)
def test_an_end_of_the_interval_is_named_where_it_says_something(low, high, words):
    assert words in explained(low, high)
    assert " hold" not in explained()


@pytest.mark.parametrize(
    ("segments", "start"),
    [
        ([], "carries our watermark, of our key k, version 1. Passages that carry it hold at least"),
        ([PASSAGE], "contains a passage made with our key k, version 1. It holds at least"),
        ([PASSAGE] * 2, "contains passages made with our key k, version 1. They hold at least"),
    ],
)
def test_passages_are_contained_and_a_text_without_any_carries_the_mark(segments, start):
    assert explained(0.5, 1.0, key=KEY, segments=segments).startswith(f"This text {start}")


@pytest.mark.parametrize(
    ("sure", "unsure", "headline", "said"),
    [
        (2, 0, "Watermark found in 2 passages", ""),
        (
            1,
            2,
            "Watermark found in one passage",
            "2 passages that are shown are by themselves less sure than",
        ),
        (0, 1, "Watermark found", "One passage that is shown is by itself less sure than this rate."),
    ],
)
def test_the_headline_counts_passages_that_are_by_themselves_within_the_rate(
    sure: int, unsure: int, headline: str, said: str
) -> None:
    segments = [PASSAGE] * sure + [PASSAGE.model_copy(update={"log10_e_value": -4.9})] * unsure
    result = CombinedResult(id="a", verdict="watermarked", tokens=99, hypotheses=1, segments=segments)
    found = message(result, 1e-5)
    assert found.headline == headline
    assert said in found.explanation
    assert ("less sure" in found.explanation) is (unsure > 0)


@pytest.mark.parametrize(("log10_p", "said"), [(-11.9, False), (-12.0, True), (-41.0, True)])
def test_what_is_too_rare_to_picture_is_called_practically_impossible(log10_p, said):
    assert ("practically impossible by chance" in explained(log10_p=log10_p)) is said


def test_lengths_are_told_in_words():
    words = [about_words(tokens) for tokens in (1, 27, 175)]
    assert words == ["1 English word", "20 English words", "130 English words"]
