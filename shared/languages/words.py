"""Sentences of a language, with numbers and nouns as it writes them."""

import json
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import cast

LANGUAGES = ("en", "de", "es", "fr", "pt")
_MILLION = 1_000_000
# Of what a client asks for; a longer list is no list of languages that somebody reads.
_MOST_CHARACTERS = 1_000


class Words:
    """A language's catalogue.

    Attributes:
        language: its tag (BCP 47).
    """

    def __init__(self, language: str, sentences: Mapping[str, str | Mapping[str, str]]) -> None:
        self.language = language
        self._sentences = sentences

    @property
    def named(self) -> str | None:
        """The tag where an answer is to name it: English is the usual."""
        return None if self.language == "en" else self.language

    def say(self, name: str, /, **values: object) -> str:
        """The sentence of that name. Whole numbers are grouped; `count` chooses the plural form."""
        sentence = self._sentences[name]
        if not isinstance(sentence, str):
            sentence = sentence.get(_plural_form(cast(int, values["count"])), sentence["other"])
        return sentence.format_map(
            {key: self.number(value) if isinstance(value, int) else value for key, value in values.items()}
        )

    def number(self, number: int) -> str:
        return f"{number:,}".replace(",", str(self._sentences["number.group"]))

    def listed(self, parts: list[str]) -> str:
        """The parts with "and" between them."""
        return self.say("list.and").join(parts)


def _plural_form(count: int) -> str:
    """The category (CLDR) of a number of at least 1, in each of the languages that has it."""
    return "one" if count == 1 else "many" if count and count % _MILLION == 0 else "other"


@cache
def words_of(language: str) -> Words:
    content = files("ttmark.shared.languages").joinpath(f"{language}.json").read_text(encoding="utf-8")
    return Words(language, json.loads(content))


def preferred_words(accepted: str | None) -> Words:
    """The words for a client's header `Accept-Language`; English where it names no language that is there."""
    best, found = 0.0, "en"
    for wish in (accepted or "")[:_MOST_CHARACTERS].split(","):
        tag, _, parameter = wish.partition(";")
        language, weight = tag.strip().split("-")[0].lower(), _weight(parameter)
        if language in LANGUAGES and weight > best:
            best, found = weight, language
    return words_of(found)


def _weight(parameter: str) -> float:
    """The value of `q=`, from 0 to 1; 1 where there is none, 0 where it is none."""
    name, _, value = parameter.replace(" ", "").partition("=")
    if name != "q":
        return 1.0
    try:
        weight = float(value)
    except ValueError:
        return 0.0
    return weight if 0.0 <= weight <= 1.0 else 0.0


ENGLISH = words_of("en")


def counted(number: int, noun: str) -> str:
    """ "1 key", "2 keys", "1,000 keys"; the noun's plural ends with s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    if seconds <= 120:
        return counted(math.ceil(seconds), "second")
    if seconds <= 7200:
        return f"{math.ceil(seconds / 60)} minutes"
    return f"{math.ceil(seconds / 3600)} hours"
