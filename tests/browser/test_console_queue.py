"""The team's queue in the console: two people at once, and neither writes over the other."""

from playwright.sync_api import Page, expect

from tests.browser.actions import check, sign_in


def queue(page: Page, text: str, said: str) -> None:
    """Checks a marked text and puts it into the queue."""
    check(page, text)
    expect(page.locator("#announce")).to_have_text("Watermark found")
    page.get_by_role("button", name="Add to the queue").click()
    expect(page.locator("#announce")).to_have_text(said)


def open_queue(page: Page) -> None:
    page.get_by_text("The team's queue").click()


def change(page: Page, state: str, note: str) -> None:
    page.get_by_role("button", name="Change Pasted text").click()
    page.get_by_label("New state").select_option(state)
    page.get_by_label("Note").fill(note)


def test_two_people_at_once_and_the_second_is_told_what_is_there(connected, site, chromium):
    queue(connected, site.marked("press-room", 120), "In the queue")
    open_queue(connected)
    expect(connected.locator("#queue-list tr")).to_have_count(1)
    context = chromium.new_context(reduced_motion="reduce")
    second = context.new_page()
    second.goto(site.url)
    sign_in(second, site.tokens["second"])
    second.get_by_text("Connected · 2 keys").wait_for()
    open_queue(second)
    expect(second.locator("#queue-list .state")).to_have_text("new")
    change(connected, "looked at", "mine to look at")
    change(second, "decided", "it is ours")
    connected.get_by_role("button", name="Save", exact=True).click()
    expect(connected.locator("#queue-list .state")).to_have_text("looked at")
    second.get_by_role("button", name="Save", exact=True).click()
    expect(second.locator("#queue-list .problem")).to_contain_text("it is looked at now, by token")
    expect(second.get_by_label("Note")).to_have_value("it is ours")
    second.get_by_role("button", name="Save", exact=True).click()
    expect(second.locator("#queue-list .state")).to_have_text("decided")
    connected.get_by_role("button", name="Refresh").click()
    expect(connected.locator("#queue-list tr")).to_contain_text("it is ours")
    connected.locator("#queue-state").select_option("new")
    expect(connected.locator("#queue-list tr")).to_have_count(0)
    queue(connected, site.marked("press-room", 120), "Was in the queue")
    context.close()


def test_who_may_not_see_the_queue_has_none(page: Page, site) -> None:
    sign_in(page, site.tokens["verdict"])
    expect(page.locator("#connection")).to_be_visible()
    expect(page.locator("#queue")).to_be_hidden()
