"""The public page in a real browser."""

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.actions import sign_in


@pytest.fixture
def check(page: Page, site) -> Page:
    """The page for visitors without a token."""
    page.goto(f"{site.url}/check")
    expect(page.locator("#size")).to_have_text("0 of 20,000 characters")
    return page


@pytest.fixture
def with_token(page: Page, site) -> Page:
    """The page where each visitor needs a token; the service is asked with it."""
    document = page.request.get(f"{site.url}/.well-known/text-provenance.json").json()
    page.route(
        "**/text-provenance.json", lambda route: route.fulfill(json=document | {"token_required": True})
    )
    page.goto(f"{site.url}/check")
    expect(page.locator("#access")).to_be_visible()
    return page


def ask(page: Page, text: str) -> None:
    page.get_by_label("Text to check").fill(text)
    page.get_by_role("button", name="Check the text").click()


def test_a_text_is_answered_in_words_without_signing_in(check: Page, site) -> None:
    expect(check.locator("#access")).to_be_hidden()
    ask(check, "<img src=x onerror=alert(1)> " * 3)  # stays a text
    expect(check.locator("#headline")).to_be_visible()
    assert check.locator("img").count() == 0
    ask(check, site.marked("press-room", 200))
    expect(check.locator("#headline")).to_have_text("Watermark found")
    expect(check.locator("#result")).to_be_focused()
    expect(check.locator("#caution")).to_contain_text("does not show that every word is the model's")
    expect(check.locator("#result")).not_to_contain_text("press-room")
    ask(check, site.human(400))
    expect(check.locator("#headline")).to_have_text("No watermark found")
    expect(check.locator("#caution")).to_contain_text("This proves nothing.")
    ask(check, "bade bor")
    expect(check.locator("#headline")).to_have_text("Too short to tell")


def test_what_an_answer_means_how_to_ask_with_a_program_and_problems_are_said(check: Page, site) -> None:
    for verdict in ("found", "not_found", "too_short"):
        expect(check.locator(f"#promise-{verdict}")).not_to_be_empty()
    program = check.locator("#program").text_content() or ""
    assert program.startswith(f"curl -s {site.url}/v1/detect/public")
    assert "Authorization" not in program
    expect(check.get_by_role("link", name="text-provenance.json")).to_be_visible()
    ask(check, "  ")
    expect(check.locator("#problem")).to_have_text("Paste a text first.")
    ask(check, "a" * 20_001)
    expect(check.locator("#problem")).to_have_text("The text may have 20000 characters.")

    def busy(route: Route) -> None:
        route.fulfill(status=429, json={"detail": "Used up."}, headers={"Retry-After": "7300"})

    check.route("**/v1/detect/public", busy)
    ask(check, "a text")
    expect(check.locator("#problem")).to_have_text("Used up. Try again in 3 hours.")
    check.unroute("**/v1/detect/public")
    check.route("**/v1/detect/public", lambda route: route.abort())
    ask(check, "a text")
    expect(check.locator("#problem")).to_have_text("The service cannot be reached.")


def test_a_token_is_typed_once_and_forgotten_on_demand(with_token: Page, site) -> None:
    expect(with_token.locator("#contact-link")).to_have_attribute("href", "https://example.org/tokens")
    assert "Authorization: Bearer $TOKEN" in (with_token.locator("#program").text_content() or "")
    sign_in(with_token, site.tokens["public"])
    expect(with_token.locator("#access")).to_be_hidden()
    ask(with_token, site.marked("press-room", 200))
    expect(with_token.locator("#headline")).to_have_text("Watermark found")
    with_token.reload()
    expect(with_token.locator("#sign-out")).to_be_visible()
    with_token.get_by_role("button", name="Forget the token").click()
    expect(with_token.locator("#access")).to_be_visible()
    assert with_token.evaluate("sessionStorage.length") == 0


def test_a_token_that_is_not_accepted_is_asked_for_again(with_token: Page, site) -> None:
    for token in ("wrong", site.tokens["generate"]):
        sign_in(with_token, token)
        with with_token.expect_response("**/v1/detect/public"):
            ask(with_token, "a text")
        expect(with_token.locator("#access-problem")).to_have_text("This access token is not accepted.")
        assert with_token.evaluate("sessionStorage.length") == 0
