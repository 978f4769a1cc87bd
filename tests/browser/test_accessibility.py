"""axe-core finds nothing wrong with any state of the pages, in light, in dark and on a phone."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.actions import check, faultless, file, give, sign_in

pytestmark = pytest.mark.long


LOOKS = {
    "light": ("light", 1280, 800),
    "dark": ("dark", 1280, 800),
    "phone": ("light", 390, 844),
    "phone, dark": ("dark", 390, 844),
}


# Each colour scheme and each width once; the slow tier sees the others of the four.
@pytest.fixture(params=[("light", "phone, dark"), pytest.param(("dark", "phone"), marks=pytest.mark.slow)])
def look(page: Page, request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Has axe look at a state of the page in two looks."""

    def at(state: str) -> None:
        for name in request.param:
            scheme, width, height = LOOKS[name]
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.set_viewport_size({"width": width, "height": height})
            faultless(page, f"{state}, {name}")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{state}, {name}"

    return at


def test_the_console(page, site, look):
    look("signed out")
    sign_in(page, "wrong")
    expect(page.locator("#access-problem")).to_contain_text("not accepted")
    look("refused")
    sign_in(page, site.tokens["full"])
    expect(page.locator("#sign-out")).to_be_visible()
    page.locator("#keys summary").click()
    look("connected, choosing keys")
    page.keyboard.press("Escape")
    give(page, file("picture.gif", b"GIF89a\0"))
    page.locator("#check").click()
    page.locator("#batch-list tr.failed").wait_for()
    look("a rejected file")
    texts = {"a.txt": site.marked("press-room", 160), "a.gif": "x", "b.txt": "bade bor"}
    give(page, *(file(name, text) for name, text in texts.items()))
    look("several files")
    page.locator("#check").click()
    expect(page.locator("#batch-title")).to_have_text("3 of 3 files")
    look("answers to several files")
    for text, mode, headline in (
        ("bade bor", "Unedited", "Too short to tell"),
        (site.human(200), "Unedited", "No watermark found"),
        (site.marked("press-room", 120), "Unedited", "Watermark found"),
        (f"{site.human(300)} {site.marked('press-room', 240)}", "Mixed", "Watermark found in one passage"),
    ):
        check(page, text, mode, "1e-3")
        expect(page.locator("#headline")).to_have_text(headline)
        if page.locator("#numbers").is_visible():
            page.locator("#numbers").evaluate("(numbers) => { numbers.open = true; }")
        look(headline)
    page.route("**/v1/detect/**", lambda route: route.abort())
    check(page, "some text")
    expect(page.locator("#failure")).to_be_visible()
    look("a failure")


def test_the_playground(playground, look):
    playground.get_by_role("button", name="Write").click()
    expect(playground.locator("#problem")).to_be_visible()
    look("signed out, with a problem")
    sign_in(playground, "good")
    expect(playground.locator("#sign-out")).to_be_visible()
    playground.get_by_role("button", name="Write").click()
    expect(playground.locator("#count")).to_contain_text("carry the mark")
    look("an answer")


def test_the_public_page(page, site, look):
    page.goto(f"{site.url}/check")
    expect(page.locator("#size")).to_contain_text("of 20,000 characters")
    look("an empty box")
    page.get_by_role("button", name="Check the text").click()
    look("a problem")
    for text, headline in (
        ("bade bor", "Too short to tell"),
        (site.human(400), "No watermark found"),
        (site.marked("press-room", 200), "Watermark found"),
    ):
        page.get_by_label("Text to check").fill(text)
        page.get_by_role("button", name="Check the text").click()
        expect(page.locator("#headline")).to_have_text(headline)
        look(headline)
    document = page.request.get(f"{site.url}/.well-known/text-provenance.json").json()
    page.route(
        "**/text-provenance.json", lambda route: route.fulfill(json=document | {"token_required": True})
    )
    page.reload()
    expect(page.locator("#access")).to_be_visible()
    look("a token is asked for")
