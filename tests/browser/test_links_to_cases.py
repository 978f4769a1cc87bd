"""A case that the service keeps, from the button to the link that somebody else opens."""

import re

from playwright.sync_api import Page, expect

from tests.browser.test_console_records import check


def kept_link(page: Page, site) -> str:
    check(page, site.marked("press-room", 60))
    page.get_by_role("button", name="Keep and copy link").click()
    expect(page.get_by_role("button", name="Kept for 30 days, link copied")).to_be_visible()
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_a_link_opens_for_a_colleague_and_not_without_a_token(connected: Page, site) -> None:
    link = kept_link(connected, site)
    assert re.fullmatch(rf"{site.url}/#case=[0-9a-f]{{32}}", link)
    connected.get_by_role("button", name="Sign out").click()
    connected.goto("about:blank")
    connected.goto(link)
    field = connected.get_by_label("Access token")
    field.fill(site.tokens["verdict"])
    connected.get_by_role("button", name="Connect").click()
    expect(connected.locator("#text-problem")).to_have_text("The link names no case that this token may see.")
    assert connected.evaluate("location.hash") == ""
    connected.get_by_role("button", name="Sign out").click()
    connected.goto("about:blank")
    connected.goto(link)
    field.fill(site.tokens["full"])
    with connected.expect_download() as download:
        connected.get_by_role("button", name="Connect").click()
    assert download.value.suggested_filename == f"watermark-case-{link[-32:]}.html"
    page = download.value.path().read_text(encoding="utf-8")
    assert "carries our watermark, of" in page


def test_the_button_is_there_only_where_cases_are_kept(page: Page, site) -> None:
    def without(route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"case_days": None})

    page.route("**/v1/keys", without)
    page.get_by_label("Access token").fill(site.tokens["full"])
    page.get_by_role("button", name="Connect").click()
    page.get_by_text("Connected").first.wait_for()
    check(page, site.marked("press-room", 60))
    expect(page.get_by_role("button", name="Save case", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Keep and copy link")).to_be_hidden()
