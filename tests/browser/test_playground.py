"""The playground in a real browser; the test answers in place of the generation service."""

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.actions import sign_in

MARK = {"status": "watermarked", "reasons": {"warm_up": 1}, "blocks": 4, "watermarked_blocks": 3}


def events(pieces: list[tuple[str, bool]], *, chat: bool) -> str:
    """A stream as the service sends it."""
    chunks: list[dict[str, object]] = []
    for text, marked in pieces:
        said: dict[str, object] = {"delta": {"content": text}} if chat else {"text": text}
        chunks.append({"choices": [{"index": 0, "watermarked": marked} | said]})
    chunks[-1]["watermark"] = MARK | {"detectability": "none"}
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return ": keep-alive\n\n".join(lines) + "data: [DONE]\n\n"


SAMPLING = {"temperature": 0.7, "top_p": 0.9, "top_k": 50, "min_p": 0, "repetition_penalty": 1.15}
PIECES = [(" The", False), (" light <b>", True), (" turns", True), (" & shines", True)]


@pytest.fixture
def playground(page: Page, site, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The page over a model that chats, or over one that continues: the parameter."""
    chat = getattr(request, "param", True)
    asked: list[dict[str, object]] = []

    def answer(route: Route) -> None:
        asked.append(route.request.post_data_json)
        body = events(PIECES, chat=chat)
        route.fulfill(body=body, headers={"Content-Type": "text/event-stream"})

    def models(route: Route) -> None:
        if route.request.headers["authorization"] != "Bearer good":
            route.fulfill(status=401, json={"error": {"message": "The access token is not valid."}})
        else:
            own = {"id": "tiny", "chat": chat, "sampling": SAMPLING}
            route.fulfill(
                json={"data": [own, own | {"id": "plain", "sampling": {"temperature": 1, "top_k": 0}}]}
            )

    page.route("**/v1/models", models)
    page.route("**/v1/chat/completions" if chat else "**/v1/completions", answer)
    page.goto(f"{site.url}/playground")
    yield page
    for body in asked:
        assert body["watermark"] == {"show_blocks": True}
        assert not SAMPLING.keys() & body.keys()
        assert ("messages" if chat else "prompt") in body


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
