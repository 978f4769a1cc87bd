"""A case that the service keeps, from the button to the link that somebody else opens."""

import re

from playwright.sync_api import Page, expect

from tests.browser.actions import sign_in
from tests.browser.test_console_records import check


def kept_link(page: Page, site) -> str:
    check(page, site.marked("press-room", 60))
    page.get_by_role("button", name="Keep and copy link").click()
    expect(page.get_by_role("button", name="Kept for 30 days, link copied")).to_be_visible()
    return str(page.evaluate("navigator.clipboard.readText()"))


def open_signed_out(page: Page, link: str) -> None:
    page.get_by_role("button", name="Sign out").click()
    page.goto("about:blank")
    page.goto(link)


def test_a_link_opens_for_a_colleague_and_not_without_a_token(connected: Page, site) -> None:
    link = kept_link(connected, site)
    assert re.fullmatch(rf"{site.url}/#case=[0-9a-f]{{32}}", link)
    open_signed_out(connected, link)
    sign_in(connected, site.tokens["verdict"])
    expect(connected.locator("#text-problem")).to_have_text("The link names no case that this token may see.")
    assert connected.evaluate("location.hash") == ""
    open_signed_out(connected, link)
    with connected.expect_download() as download:
        sign_in(connected, site.tokens["full"])
    assert download.value.suggested_filename == f"watermark-case-{link[-32:]}.html"
    page = download.value.path().read_text(encoding="utf-8")
    assert "carries our watermark, of" in page


def test_the_button_is_there_only_where_cases_are_kept(page: Page, site) -> None:
    def without(route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"case_days": None})

    page.route("**/v1/keys", without)
    sign_in(page, site.tokens["full"])
    page.get_by_text("Connected").first.wait_for()
    check(page, site.marked("press-room", 60))
    expect(page.get_by_role("button", name="Save case", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Keep and copy link")).to_be_hidden()
