"""The console is served whole, from here alone, under a strict policy."""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable

import pytest
from lxml import html

from tests.unit.detect_service.test_languages import (
    catalogue,
    test_a_catalogue_has_the_sentences_and_placeholders_of_the_english_one,  # noqa: F401
    test_a_counted_sentence_has_the_plural_forms_of_its_language,  # noqa: F401
)
from ttmark.shared.languages.words import LANGUAGES

STATIC = files("ttmark.detect_service.features.console").joinpath("static")
PAGE = STATIC.joinpath("index.html").read_text(encoding="utf-8")
SCRIPTS = {
    file.name: file.read_text(encoding="utf-8") for file in STATIC.iterdir() if file.name.endswith(".js")
}
# Strings of code that look like prose: what events, errors and file headers are called.
NO_PROSE = {
    "AbortError", "Content-Type", "End", "Enter", "Escape", "Files", "Home", "QuotaExceededError",
    "TTMark watermark check",  # names the kind of a file that programs read
    "(prefers-reduced-motion: reduce)",
}  # fmt: skip
CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|class(?:Name)?:\s*(?:"[^"]*"|`[^`]*`)"""
    r"""|"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`""",
    re.DOTALL,
)


async def test_the_page_is_served_to_everyone_with_a_strict_policy(service) -> None:
    response = await service.client.get("/")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


async def test_every_file_that_the_page_names_is_there_and_none_is_elsewhere(service) -> None:
    named: set[str] = set()
    for file in STATIC.iterdir():
        text = file.read_text(encoding="utf-8")
        named |= set(re.findall(r"""(?:href|src|from)[= ]["']([^"'#]+)["']""", text))
    assert "/console/main.js" in named
    for address in named:
        assert address.startswith("/console/"), address
        assert (await service.client.get(address)).status_code == 200


async def test_an_unchanged_file_is_not_sent_again(service) -> None:
    first = await service.client.get("/console/main.js")
    again = await service.client.get("/console/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_other_files_cannot_be_reached(service) -> None:
    for path in ("/console/__init__.py", "/console/..%2f__init__.py", "/console/"):
        assert (await service.client.get(path)).status_code == 404


@pytest.mark.parametrize("home", ["detect_service.features.console", "gen_service.features.playground"])
def test_nothing_in_a_page_is_inline(home: str) -> None:
    page = files(f"ttmark.{home}").joinpath("static/index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|<script(?! type=\"module\" src=)|\son\w+=|\sstyle=", page)


# Languages: each sentence stands in a catalogue, and those say the same.


@pytest.fixture
def catalogues() -> Traversable:
    return STATIC


def test_the_page_offers_each_language_and_shows_nothing_that_is_not_in_the_catalogue():
    assert set(re.findall(r'<option value="(\w+)" lang', PAGE)) == set(LANGUAGES)
    page = html.fromstring(PAGE)
    assert page.xpath("//@aria-label | //@placeholder | //@title | //@alt") == []
    assert page.xpath("//text()[normalize-space() and not(ancestor::*[@translate='no'])]") == []


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


def test_a_script_holds_no_sentence():
    assert {name: prose(script) for name, script in SCRIPTS.items() if prose(script)} == {}


def test_each_sentence_is_said_somewhere_and_each_that_is_said_exists() -> None:
    named = set(re.findall(r'data-t(?:-[a-z-]+)?="([\w.]+)"', PAGE))
    beginnings: set[str] = set()
    for script in SCRIPTS.values():
        named |= set(re.findall(r'"([a-z_]+\.[a-z0-9_]+)"', script))
        beginnings |= set(re.findall(r"`([a-z_]+\.[a-z0-9_]*)\$\{", script))
    english = catalogue(STATIC, "en")
    groups = {key.split(".")[0] for key in english}
    assert {key for key in named if key.split(".")[0] in groups} - set(english) == set()
    unsaid = [key for key in english if key not in named and not key.startswith(tuple(beginnings))]
    assert unsaid == []
