"""What a moderator does with the console, in a real browser."""

import json
import re
from itertools import pairwise

from playwright.sync_api import Page, Route, expect

from tests.browser.actions import check, file, give, sign_in


def headline(page: Page):
    return page.locator("#headline")


def test_a_marked_text_is_found_explained_mapped_and_reported(connected: Page, site) -> None:
    text = site.marked("press-room", 120)
    check(connected, text)
    expect(headline(connected)).to_have_text("Watermark found")
    expect(headline(connected)).to_be_focused()
    expect(connected.locator("#explanation")).to_contain_text("our key press-room, version 1")
    expect(connected.locator("#explanation")).to_contain_text("no more than 1 in 100,000 texts")
    expect(connected.locator("#facts")).to_contain_text("1 in")
    strong = connected.evaluate("['2', '3', '4'].map(l => CSS.highlights.get(`heat-${l}`).size)")
    assert sum(strong) > 25
    connected.get_by_text("The numbers").click()
    expect(connected.locator("#number-list")).to_contain_text("p-value")
    expect(connected.get_by_role("table", name="Strongest steps")).to_be_visible()
    connected.get_by_role("button", name="Copy summary").click()
    expect(connected.get_by_role("button", name="Copied")).to_be_visible()
    copied = connected.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(
        "Watermark found\nThis text carries our watermark, of our key press-room, version 1. "
    )
    assert "numbers, names and negations may have been changed since." in copied
    with connected.expect_download() as download:
        connected.get_by_role("button", name="Download report").click()
    content = download.value.path().read_text(encoding="utf-8")
    report = json.loads(content)
    assert report["text"] == text
    assert report["result"]["key"]["key_id"] == "press-room"
    assert report["options"]["fpr"] == 1e-5
    assert site.tokens["full"] not in content


def test_a_passage_of_any_e_value_is_shown(connected: Page, site) -> None:
    place = {"start_token": 0, "end_token": 60, "start_char": 0, "end_char": 200}

    def with_passage(route: Route) -> None:
        response = route.fetch()
        body = response.json()
        (result,) = body["results"]
        result["segments"] = [place | {"key": result["key"]}]
        route.fulfill(response=response, json=body)

    connected.route("**/v1/detect/**", with_passage)
    notes = ((5.386, "243220"), (7.2, "1.58e7"), (-2.0, "0.0100"), (-6.0, "1.00e-6"))
    for place["log10_e_value"], shown in notes:
        check(connected, site.marked("press-room", 120))
        if not connected.locator("#numbers").evaluate("details => details.open"):
            connected.get_by_text("The numbers").click()
        expect(connected.get_by_role("table", name="Passages")).to_contain_text(shown)
        unsure = connected.locator("#passages").get_by_text("by itself less sure than the rate")
        expect(unsure).to_have_count(int(place["log10_e_value"] > -5))


def test_no_text_a_short_one_and_one_without_a_mark_are_answered_in_words(connected: Page, site) -> None:
    check(connected, "  \n ")
    expect(connected.locator("#text-problem")).to_have_text("Paste a text or open a file first.")
    expect(connected.get_by_label("Text to check")).to_be_focused()
    expect(connected.get_by_label("Text to check")).to_have_attribute("aria-invalid", "true")
    expect(connected.locator("#result")).to_be_hidden()
    check(connected, "bade bor")
    expect(headline(connected)).to_have_text("Too short to tell")
    expect(connected.locator("#explanation")).to_contain_text("has only about 1 English word")
    check(connected, site.human(200))
    expect(headline(connected)).to_have_text("No watermark found")
    expect(connected.locator("#caution")).to_contain_text("does not show that a person wrote the text")


def test_passages_of_two_keys_are_marked_in_the_text(connected: Page, site) -> None:
    parts = [site.human(300, 1), site.marked("press-room", 240), site.human(300, 2)]
    parts += [site.marked("help-desk", 240), site.human(300, 3)]
    check(connected, " ".join(parts), "Mixed", "1e-3")
    expect(headline(connected)).to_have_text("Watermark found in 2 passages")
    expect(connected.locator("#passages")).to_contain_text("press-room, version 1")
    expect(connected.locator("#passages")).to_contain_text("help-desk, version 1")
    expect(connected.locator("#document mark")).to_have_count(2)
    assert connected.locator("#document mark").first.get_attribute("class") == "key-0"
    connected.locator("#passages button").nth(1).click()
    expect(connected.locator("#passage-2")).to_be_in_viewport()


def test_a_text_beyond_the_limit_is_refused_in_words(connected: Page, site) -> None:
    check(connected, site.human(31_000))
    expect(connected.locator("#failure-title")).to_have_text("The text is too long")
    expect(connected.locator("#failure-text")).to_have_text(
        "The document has more tokens than the limit of 30000."
    )
    connected.get_by_label("Text to check").fill("a" * 2_000_000)
    connected.get_by_role("button", name="Check the text").click()
    expect(connected.locator("#text-problem")).to_contain_text("longer than the service takes")


def test_the_verdict_scope_shows_a_verdict_and_nothing_else(page: Page, site) -> None:
    sign_in(page, site.tokens["verdict"])
    page.get_by_text("verdict only").wait_for()
    check(page, site.marked("press-room", 120))
    expect(headline(page)).to_have_text("Watermark found")
    expect(page.locator("#explanation")).to_contain_text("one of our keys")
    for hidden in ("#where", "#numbers"):
        expect(page.locator(hidden)).to_be_hidden()


def test_a_check_can_be_stopped_and_a_service_in_trouble_is_named(connected: Page) -> None:
    connected.route("**/v1/detect/**", lambda route: None)
    check(connected, "some text")
    expect(connected.locator("#check")).to_have_attribute("aria-busy", "true")
    connected.locator("#check").click()
    expect(connected.locator("#check")).to_have_attribute("aria-busy", "false")
    expect(connected.locator("#failure")).to_be_hidden()
    connected.unroute("**/v1/detect/**")
    connected.route("**/v1/detect/**", lambda route: route.abort())
    check(connected, "some text")
    expect(connected.locator("#failure-title")).to_have_text("The service cannot be reached")
    connected.unroute("**/v1/detect/**")
    busy = {"Retry-After": ""}
    connected.route(
        "**/v1/detect/**",
        lambda route: route.fulfill(status=429, headers=busy, json={"detail": "Slow down."}),
    )
    for busy["Retry-After"], words in (("7", "7 seconds"), ("121", "3 minutes"), ("40000", "12 hours")):
        check(connected, "some text")
        expect(connected.locator("#failure-text")).to_have_text(f"Try again in {words}.")


def test_hidden_characters_are_reported_and_undone(connected: Page, site) -> None:
    text = site.marked("press-room", 160).replace("a", "\u0430").replace(" ", " \u200b")
    check(connected, text)
    expect(headline(connected)).to_have_text("Watermark found")
    expect(connected.locator("#hidden-note")).to_contain_text("It was checked as it is and without them.")
    connected.get_by_label("Check also without hidden characters").uncheck()
    connected.get_by_role("button", name="Check the text").click()
    expect(headline(connected)).to_have_text("Too short to tell")
    expect(connected.locator("#hidden-note")).to_contain_text("They were left as they are.")


def test_keys_can_be_chosen(connected: Page, site) -> None:
    connected.locator("#keys summary").click()
    connected.get_by_label("press-room").uncheck()
    expect(connected.locator("#keys-chosen")).to_have_text("help-desk")
    connected.keyboard.press("Escape")
    expect(connected.locator("#key-list")).to_be_hidden()
    check(connected, site.marked("press-room", 120))
    expect(headline(connected)).to_have_text("No watermark found")


def test_characters_beyond_the_basic_plane_do_not_shift_the_marks(connected: Page, site) -> None:
    text = "\U0001f600\U0001f680 " * 3 + site.marked("press-room", 160)
    check(connected, text)
    # The heat map is painted after the verdict is shown.
    connected.wait_for_function(
        '() => CSS.highlights.get("heat-4")?.size && CSS.highlights.get("heat-3")?.size'
    )
    words = connected.evaluate(
        """() => [...CSS.highlights.get("heat-4"), ...CSS.highlights.get("heat-3")].map((r) => {
            const range = new Range();
            range.setStart(r.startContainer, r.startOffset);
            range.setEnd(r.endContainer, r.endOffset);
            return range.toString();
        })"""
    )
    assert words
    pairs = text.split()
    known = {f"{first} {second}" for first, second in pairwise(pairs)}
    assert all(word.strip() in known for word in words)


def test_the_keyboard_is_enough(page: Page, site) -> None:
    token = page.get_by_label("Access token")
    expect(token).to_be_focused()
    expect(token).to_have_accessible_description(re.compile("It stays in this tab"))
    page.keyboard.type(site.tokens["full"])
    page.keyboard.press("Enter")
    page.get_by_text("Connected ·").wait_for()
    expect(page.get_by_label("Text to check")).to_be_focused()
    page.keyboard.insert_text(site.marked("press-room", 120))
    page.keyboard.press("Control+Enter")
    expect(headline(page)).to_have_text("Watermark found")
    page.locator("#document").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#step")).to_contain_text("Step 2 of")


def test_a_token_is_needed_and_focus_goes_where_the_next_step_is(page: Page, site) -> None:
    token = page.get_by_label("Access token")
    expect(token).to_be_focused()
    for _ in ("colours", "language", "skip"):
        page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("link", name="Skip to the text field")).to_be_focused()
    check(page, "some text")
    expect(page.locator("#access-problem")).to_have_text("Enter an access token first.")
    for refused, why in (("ttm_wrong", "is not accepted"), (site.tokens["generate"], "does not allow that")):
        sign_in(page, refused)
        expect(page.locator("#access-problem")).to_contain_text(why)
        expect(token).to_be_focused()
        expect(page.locator("#connection")).to_be_hidden()
    token.fill(site.tokens["full"])
    page.get_by_role("button", name="Connect").click()
    expect(page.get_by_label("Text to check")).to_be_focused()
    page.reload()
    expect(page.get_by_label("Text to check")).to_be_focused()
    page.get_by_role("button", name="Sign out").click()
    expect(token).to_be_focused()


def test_who_went_on_while_the_service_answers_is_not_called_back(page: Page, site) -> None:
    held: list[Route] = []
    page.route("**/v1/keys", lambda route: held.append(route))
    sign_in(page, site.tokens["full"])
    page.get_by_label("False alarms").focus()
    held[0].continue_()
    page.get_by_text("Connected ·").wait_for()
    expect(page.get_by_label("False alarms")).to_be_focused()


def test_files_that_were_chosen_first_are_checked_next_unless_they_are_put_away(page: Page, site) -> None:
    give(page, file("1.txt", "a b c"), file("2.txt", "a b c"))
    sign_in(page, site.tokens["full"])
    expect(page.get_by_role("button", name="Check the 2 files")).to_be_focused()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#batch")).to_be_hidden()
    expect(page.locator("#check-label")).to_have_text("Check the text")


def test_colours_follow_the_system_and_can_be_chosen(connected: Page) -> None:
    def background() -> str:
        return str(connected.evaluate("getComputedStyle(document.documentElement).backgroundColor"))

    light = background()
    connected.emulate_media(color_scheme="dark")
    dark = background()
    assert light != dark
    connected.get_by_role("button", name="Colours: as the system").click()
    assert background() == light
