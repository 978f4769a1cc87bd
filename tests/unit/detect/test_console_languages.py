"""The console speaks each of its languages whole: one catalogue, and no sentence beside it."""

import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import pytest
from babel import Locale

STATIC = files("ttmark.detect_service.console").joinpath("static")
PAGE = STATIC.joinpath("index.html").read_text(encoding="utf-8")
SCRIPTS = {
    file.name: file.read_text(encoding="utf-8") for file in STATIC.iterdir() if file.name.endswith(".js")
}
LANGUAGES = sorted(re.findall(r'<option value="(\w+)" lang', PAGE))
OTHERS = [language for language in LANGUAGES if language != "en"]
Sentence = str | dict[str, str]

# Strings of code that look like prose: what events, errors and file headers are called.
NO_PROSE = {
    "AbortError",
    "Content-Type",
    "End",
    "Enter",
    "Escape",
    "Files",
    "Home",
    "QuotaExceededError",
    "TTMark watermark check",  # names the kind of a file that programs read
    "(prefers-reduced-motion: reduce)",
}
CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|class(?:Name)?:\s*(?:"[^"]*"|`[^`]*`)"""
    r"""|"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`""",
    re.DOTALL,
)


def catalogue(language: str) -> dict[str, Sentence]:
    content: dict[str, Sentence] = json.loads(STATIC.joinpath(f"{language}.json").read_text(encoding="utf-8"))
    return content


ENGLISH = catalogue("en")


def forms(sentence: Sentence) -> dict[str, str]:
    return {"": sentence} if isinstance(sentence, str) else sentence


def placeholders(sentence: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", sentence))


@pytest.mark.parametrize("language", OTHERS)
def test_a_catalogue_has_the_sentences_and_placeholders_of_the_english_one(language: str) -> None:
    translated = catalogue(language)
    assert list(translated) == list(ENGLISH)
    for key, sentence in ENGLISH.items():
        wanted = set().union(*map(placeholders, forms(sentence).values()))
        for form, words in forms(translated[key]).items():
            spelt = {"count"} & wanted if form == "one" else set()  # "One passage"
            assert placeholders(words) | spelt == wanted, (key, form)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_counted_sentence_has_each_plural_form_of_its_language(language: str) -> None:
    needed = {*Locale(language).plural_form.tags, "other"}
    counted = {key for key, sentence in ENGLISH.items() if isinstance(sentence, dict)}
    assert counted
    for key, sentence in catalogue(language).items():
        assert (set(sentence) if isinstance(sentence, dict) else needed) == needed, key
        assert isinstance(sentence, dict) == (key in counted), key


@pytest.mark.parametrize("language", OTHERS)
def test_nothing_is_left_in_english(language: str) -> None:
    """A sentence of four words or more is alike in two languages by oversight alone."""
    for key, sentence in catalogue(language).items():
        for form, words in forms(sentence).items():
            same = words in forms(ENGLISH[key]).values()
            assert not same or len(re.sub(r"\{\w+\}", "", words).split()) < 4, (key, form)


class _Visible(HTMLParser):
    """What a page shows that neither comes from the catalogue nor is `translate="no"`."""

    VOID = frozenset({"meta", "link", "input", "path", "rect", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._open: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.found += [
            f"{name}={named[name]}" for name in ("aria-label", "placeholder", "title", "alt") if name in named
        ]
        if tag not in self.VOID:
            self._open.append(named.get("translate") == "no" or any(self._open[-1:]))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip() and not any(self._open[-1:]):
            self.found.append(data.strip())


def test_the_page_shows_nothing_that_is_not_in_the_catalogue() -> None:
    visible = _Visible()
    visible.feed(PAGE)
    assert visible.found == []


def prose(script: str) -> list[str]:
    """Strings of a script that a reader could take for a sentence or a label."""
    found = []
    for literal in CODE.finditer(script):
        text = next((group for group in literal.groups() if group is not None), "")
        words = re.sub(r"\$\{[^}]*\}", " ", text)
        if text not in NO_PROSE and re.search(
            r"^[A-Z][a-z]+|[A-Za-z]{2,}[.,:]? +[A-Za-z]{2,}", words.strip()
        ):
            found.append(text)
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_holds_no_sentence(name: str) -> None:
    assert prose(SCRIPTS[name]) == []


def test_each_sentence_is_said_somewhere_and_each_that_is_said_exists() -> None:
    named = set(re.findall(r'data-t(?:-[a-z-]+)?="([\w.]+)"', PAGE))
    beginnings: set[str] = set()
    for script in SCRIPTS.values():
        named |= set(re.findall(r'"([a-z_]+\.[a-z0-9_]+)"', script))
        beginnings |= set(re.findall(r"`([a-z_]+\.[a-z0-9_]*)\$\{", script))
    groups = {key.split(".")[0] for key in ENGLISH}
    assert {key for key in named if key.split(".")[0] in groups} - set(ENGLISH) == set()
    unsaid = [key for key in ENGLISH if key not in named and not key.startswith(tuple(beginnings))]
    assert unsaid == []


def test_the_strings_of_a_script_are_told_from_its_sentences() -> None:
    said: Any = prose('x.textContent = "Try again"; y = t("a.b"); z = `${n} more files`; c = "muted small";')
    assert said == ["Try again", "${n} more files", "muted small"]
    assert prose('element("p", { className: "muted small" }) // A comment.') == []
