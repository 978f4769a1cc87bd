"""The playground in a real browser; the test answers in place of the generation service."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.actions import sign_in


@pytest.mark.parametrize("playground", [True, False], ids=["chat", "completion"], indirect=True)
def test_an_answer_is_drawn_taken_to_the_console_and_forgotten(playground: Page) -> None:
    sign_in(playground, "good")
    playground.get_by_role("button", name="Write").click()
    expect(playground.locator("#count")).to_have_text("3 of 4 blocks carry the mark")
    expect(playground.locator("#answer")).to_have_text("The light <b> turns & shines")
    expect(playground.locator("#answer mark")).to_have_text([" light <b>", " turns", " & shines"])
    expect(playground.locator("#outcome")).to_contain_text("would not find this text")
    link = playground.get_by_role("link", name="Check it in the console")
    assert urlsplit(link.get_attribute("href")).fragment
    with playground.context.expect_page() as opened:
        link.click()
    expect(opened.value.get_by_label("Text to check")).to_have_value(" The light <b> turns & shines")
    playground.get_by_role("button", name="Sign out").click()
    expect(playground.locator("#answer")).to_be_empty()
    assert playground.evaluate("sessionStorage.length") == 0


def test_the_sampling_of_the_chosen_model_is_shown(playground: Page) -> None:
    sign_in(playground, "good")
    shown = playground.locator("#sampling")
    expect(shown).to_have_text("temperature 0.7, top p 0.9, top k 50, repetition penalty 1.15")
    playground.get_by_label("Model").select_option("plain")
    expect(shown).to_have_text("temperature 1")
    playground.get_by_role("button", name="Sign out").click()
    expect(shown).to_be_empty()


def test_what_is_missing_or_refused_is_said_and_focus_goes_where_the_next_step_is(playground: Page) -> None:
    token, problem = playground.get_by_label("Access token"), playground.locator("#problem")
    expect(token).to_be_focused()
    playground.get_by_role("button", name="Write").click()
    expect(problem).to_have_text("Enter an access token first.")
    sign_in(playground, "bad")
    expect(problem).to_have_text("The access token is not valid.")
    expect(token).to_be_focused()
    sign_in(playground, "good")
    expect(playground.get_by_label("Prompt")).to_be_focused()
    playground.reload()
    expect(playground.get_by_label("Prompt")).to_be_focused()
    playground.get_by_label("Prompt").fill(" ")
    playground.get_by_role("button", name="Write").click()
    expect(problem).to_have_text("Write a prompt first.")
