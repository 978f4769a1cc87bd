"""axe-core finds nothing wrong with any state of the pages, in light, in dark and on a phone."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.modes import choose

LOOKS = {
    "light": ("light", 1280, 800),
    "dark": ("dark", 1280, 800),
    "phone": ("light", 390, 844),
    "phone, dark": ("dark", 390, 844),
}


# Each colour scheme and each width once; the slow tier sees the others of the four.
SLOW = ("dark", "phone")


@pytest.fixture(
    params=[pytest.param(look, marks=pytest.mark.slow) if look in SLOW else look for look in LOOKS]
)
def seen(page: Page, request: pytest.FixtureRequest) -> Page:
    """The console as it looks there."""
    scheme, width, height = LOOKS[request.param]
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": height})
    return page


def faultless(page: Page, state: str) -> None:
    results = Axe().run(page)
    assert results.violations_count == 0, f"{state}: {results.generate_report()}"


def check(page: Page, text: str, mode: str = "Unedited") -> None:
    page.get_by_label("Text to check").fill(text)
    choose(page, mode)
    page.get_by_label("False alarms").select_option("1e-3")
    page.get_by_role("button", name="Check the text").click()


def test_the_console(seen: Page, site) -> None:
    faultless(seen, "signed out")
    seen.get_by_label("Access token").fill("wrong")
    seen.keyboard.press("Enter")
    expect(seen.locator("#access-problem")).to_contain_text("not accepted")
    faultless(seen, "refused")
    seen.get_by_label("Access token").fill(site.tokens["full"])
    seen.keyboard.press("Enter")
    expect(seen.locator("#sign-out")).to_be_visible()
    seen.locator("#keys summary").click()
    faultless(seen, "connected, choosing keys")
    seen.keyboard.press("Escape")
    file = {"name": "picture.png", "mimeType": "image/png", "buffer": b"x"}
    seen.locator("#file").set_input_files([file])
    expect(seen.locator("#text-problem")).to_be_visible()
    faultless(seen, "a rejected file")
    several = [
        {"name": "a.txt", "mimeType": "text/plain", "buffer": site.marked("press-room", 160).encode()},
        {"name": "a.png", "mimeType": "image/png", "buffer": b"x"},
        {"name": "b.txt", "mimeType": "text/plain", "buffer": b"bade bor"},
    ]
    seen.locator("#file").set_input_files(several)  # type: ignore[arg-type]
    faultless(seen, "several files")
    seen.locator("#check").click()
    expect(seen.locator("#batch-title")).to_have_text("3 of 3 files")
    faultless(seen, "answers to several files")
    assert seen.evaluate("document.documentElement.scrollWidth") <= seen.evaluate("innerWidth")
    for text, mode, headline in (
        ("bade bor", "Unedited", "Too short to tell"),
        (site.human(200), "Unedited", "No watermark found"),
        (site.marked("press-room", 120), "Unedited", "Watermark found"),
        (f"{site.human(300)} {site.marked('press-room', 240)}", "Mixed", "Watermark found in one passage"),
    ):
        check(seen, text, mode)
        expect(seen.locator("#headline")).to_have_text(headline)
        if seen.locator("#numbers").is_visible():
            seen.locator("#numbers").evaluate("(numbers) => { numbers.open = true; }")
        faultless(seen, headline)
    seen.route("**/v1/detect/**", lambda route: route.abort())
    check(seen, "some text")
    expect(seen.locator("#failure")).to_be_visible()
    faultless(seen, "a failure")


def test_the_playground(seen: Page, site) -> None:
    chunks = [
        {"choices": [{"index": 0, "text": text, "watermarked": marked}]}
        for text, marked in ((" The", False), (" light of", True), (" the house", True))
    ]
    mark = {"blocks": 3, "watermarked_blocks": 2, "detectability": "none"}
    body = "".join(
        f"data: {json.dumps(chunk)}\n\n" for chunk in [*chunks, {"choices": [], "watermark": mark}]
    )
    seen.route("**/v1/models", lambda route: route.fulfill(json={"data": [{"id": "tiny", "chat": False}]}))
    seen.route(
        "**/v1/completions",
        lambda route: route.fulfill(body=body, headers={"Content-Type": "text/event-stream"}),
    )
    seen.goto(f"{site.url}/playground")
    seen.get_by_role("button", name="Write").click()
    expect(seen.locator("#problem")).to_be_visible()
    faultless(seen, "signed out, with a problem")
    seen.get_by_label("Access token").fill("good")
    seen.keyboard.press("Enter")
    expect(seen.locator("#sign-out")).to_be_visible()
    seen.get_by_role("button", name="Write").click()
    expect(seen.locator("#count")).to_contain_text("carry the mark")
    faultless(seen, "an answer")
    assert seen.evaluate("document.documentElement.scrollWidth") <= seen.evaluate("innerWidth")


def test_the_public_page(seen: Page, site) -> None:
    seen.goto(f"{site.url}/check")
    expect(seen.locator("#size")).to_contain_text("of 20,000 characters")
    faultless(seen, "an empty box")
    seen.get_by_role("button", name="Check the text").click()
    faultless(seen, "a problem")
    for text, headline in (
        ("bade bor", "Too short to tell"),
        (site.human(400), "No watermark found"),
        (site.marked("press-room", 200), "Watermark found"),
    ):
        seen.get_by_label("Text to check").fill(text)
        seen.get_by_role("button", name="Check the text").click()
        expect(seen.locator("#headline")).to_have_text(headline)
        faultless(seen, headline)
    document = seen.request.get(f"{site.url}/.well-known/text-provenance.json").json()
    seen.route(
        "**/text-provenance.json", lambda route: route.fulfill(json=document | {"token_required": True})
    )
    seen.reload()
    expect(seen.locator("#access")).to_be_visible()
    faultless(seen, "a token is asked for")
    assert seen.evaluate("document.documentElement.scrollWidth") <= seen.evaluate("innerWidth")
