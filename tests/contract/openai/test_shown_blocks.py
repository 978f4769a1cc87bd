"""What the playground is made of: pieces of a stream that say whether they carry the mark, and a page."""

import json
from typing import Any

import pytest

REQUEST = {
    "model": "tiny", "max_tokens": 40, "top_k": 8, "seed": 1, "ignore_eos": True, "return_token_ids": True,
    "stream": True,
}  # fmt: skip


def stream(service: Any, route: str, watermark: dict[str, Any]) -> list[dict[str, Any]]:
    """The chunks of an answer."""
    asked = {"messages": [{"role": "user", "content": "Once"}]} if "chat" in route else {"prompt": "Once"}
    response = service.http().post(f"/v1/{route}", json=REQUEST | asked | {"watermark": watermark})
    assert response.status_code == 200, response.text
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.mark.parametrize("route", ["completions", "chat/completions"])
def test_pieces_say_whether_they_carry_the_mark(real: Any, route: str) -> None:
    chunks = stream(real, route, {"show_blocks": True})
    pieces = [choice for chunk in chunks for choice in chunk["choices"]]
    marked = [piece["token_ids"] for piece in pieces if piece["watermarked"]]
    assert len(marked) == chunks[-1]["watermark"]["watermarked_blocks"] > 10
    assert {len(ids) for ids in marked} == {2}, "blocks of the key's profile"
    assert len(marked) < chunks[-1]["watermark"]["blocks"], "the first blocks have no context"


def test_nothing_is_said_unless_it_is_asked_for(real: Any) -> None:
    for chunk in stream(real, "completions", {}):
        assert all("watermarked" not in choice for choice in chunk["choices"])


def test_there_is_no_playground_unless_it_is_wanted(fake: Any) -> None:
    assert fake.http().get("/playground").status_code == 404
