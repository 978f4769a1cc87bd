"""The playground over a generation service that the test plays."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Route

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
