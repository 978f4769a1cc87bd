"""A manifest goes with a text that is copied out of a page and pasted into another, and with files."""

import io

import docx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.actions import file, give, row, sign_in
from ttmark.shared.manifests.signer import ManifestSigner
from ttmark.shared.manifests.wrapper import wrappers

BESIDE = "A signed manifest (C2PA) of Test Service verifies and says that smollm2 wrote this text"


@pytest.fixture
def text(site) -> str:
    return f"{site.marked('press-room', 120)}\n\n{site.marked('press-room', 60)}"


@pytest.fixture
def signed(site, text: str) -> str:
    signer = ManifestSigner(site.authority.chain, site.authority.key)
    return text + signer.wrapper(text, model="smollm2")


def checked(page: Page, signed: str) -> None:
    box = page.get_by_label("Text to check")
    [sent], [there] = wrappers(signed), wrappers(box.input_value())
    assert there.characters == sent.characters
    page.get_by_role("button", name="Check the text").click()
    found(page)


def found(page: Page) -> None:
    expect(page.locator("#headline")).to_be_focused()
    expect(page.locator("#headline")).to_contain_text("Watermark found")
    expect(page.locator("#explanation")).to_contain_text(BESIDE)


def test_it_is_copied_and_pasted_with_the_text(connected: Page, signed: str) -> None:
    other = connected.context.new_page()
    paragraphs = "".join(f"<p>{block}</p>" for block in signed.split("\n\n"))
    kept = f"<div style='white-space: pre-wrap'>{signed}</div>"
    field = f"<textarea rows=9>{signed}</textarea>"
    for shown in (paragraphs, kept, field):
        other.bring_to_front()
        other.set_content(shown)
        if shown is field:
            other.locator("textarea").focus()
        other.keyboard.press("Control+a")
        other.keyboard.press("Control+c")
        connected.bring_to_front()
        connected.get_by_label("Text to check").fill("")
        connected.get_by_label("Text to check").focus()
        connected.keyboard.press("Control+v")
        checked(connected, signed)


def test_it_is_in_the_file(connected: Page, signed: str) -> None:
    document = docx.Document()
    for paragraph in signed.split("\n"):
        document.add_paragraph(paragraph)
    word = io.BytesIO()
    document.save(word)
    page = "".join(f"<p>{block}</p>" for block in signed.split("\n\n"))
    contents = {"note.txt": signed.encode(), "page.html": page.encode(), "letter.docx": word.getvalue()}
    for name, content in contents.items():
        connected.get_by_label("Text to check").fill("")
        give(connected, file(name, content))
        if name == "note.txt":
            expect(connected.get_by_label("Text to check")).not_to_have_value("")
            checked(connected, signed)
        else:
            connected.get_by_role("button", name="Check the file").click()
            row(connected, name).get_by_role("button").click()
            found(connected)
        expect(connected.locator("#source")).to_have_text(name)


def test_our_passage_anothers_and_the_manifest_are_all_named(page: Page, site) -> None:
    sign_in(page, site.tokens["partners"])
    page.get_by_text("Connected · 2 keys · with evidence").wait_for()
    parts = [site.human(200, 1), site.marked("editors", 240), site.human(200, 2), site.partners(240)]
    text = " ".join([*parts, site.human(200, 3)])
    signer = ManifestSigner(site.authority.chain, site.authority.key)
    page.get_by_label("Text to check").fill(text + signer.wrapper(text, model="smollm2"))
    page.get_by_role("button", name="Check the text").click()
    expect(page.locator("#headline")).to_contain_text("Watermark found")
    words = page.locator("#explanation")
    for named in ("our key editors, version 1", "the mark of vLLM (Gumbel), key partner, version 1", BESIDE):
        expect(words).to_contain_text(named)
    expect(page.locator("#passages")).to_contain_text("editors, version 1")
