"""What an answer's headers say of its mark, for clients that drop the `watermark` block."""

from typing import Any

import pytest

MESSAGES = [{"role": "user", "content": "Hello"}]
SAMPLING = {"model": "tiny", "top_k": 4, "temperature": 1.0, "ignore_eos": True, "seed": 3}
BODIES: dict[str, dict[str, Any]] = {
    "completions": {**SAMPLING, "prompt": "Once", "max_tokens": 120},
    "chat/completions": {**SAMPLING, "messages": MESSAGES, "max_tokens": 120},
    "responses": {**SAMPLING, "input": "Once", "max_output_tokens": 120},
}


def post(service: Any, route: str, token: str = "operator", **change: Any) -> Any:
    response = service.http(token).post(f"/v1/{route}", json=BODIES[route] | change)
    assert response.status_code == 200, response.text
    return response


def said(response: Any) -> tuple[str | None, str | None]:
    return response.headers.get("X-TTMark-Status"), response.headers.get("X-TTMark-Detectability")


@pytest.mark.parametrize("route", BODIES)
@pytest.mark.parametrize("change", [{}, {"temperature": 0}, {"watermark": {"enabled": False}}])
def test_the_headers_of_a_whole_answer_are_its_block_s(real: Any, route: str, change: Any) -> None:
    response = post(real, route, **change)
    block = response.json()["watermark"]
    assert said(response) == (block["status"], block["detectability"])
    assert (block["status"] == "unwatermarked") == bool(change)


@pytest.mark.parametrize("route", BODIES)
def test_a_stream_says_at_its_start_whether_it_will_be_marked(real: Any, route: str) -> None:
    short = {"stream": True, ("max_output_tokens" if route == "responses" else "max_tokens"): 4}
    assert said(post(real, route, **short)) == ("pending", None)
    assert said(post(real, route, **short, temperature=0)) == ("unwatermarked", None)
    unmarked = {**short, "watermark": {"enabled": False}}
    assert said(post(real, route, **unmarked)) == ("unwatermarked", None)


def test_a_stream_keeps_telling_proxies_not_to_buffer_it(fake: Any) -> None:
    headers = post(fake, "completions", stream=True).headers
    assert (headers["X-Accel-Buffering"], headers["Cache-Control"]) == ("no", "no-cache")


def test_the_headers_say_no_more_than_the_block_to_those_who_may_not_hear_it(real: Any) -> None:
    schema = {"type": "array", "items": {"type": "integer", "maximum": 9}, "maxItems": 3}
    form = {"type": "json_schema", "json_schema": {"name": "numbers", "schema": schema}}
    asked = {"response_format": form, "ignore_eos": False}
    assert said(post(real, "chat/completions", "author", **asked))[1] is None
    assert said(post(real, "chat/completions", "auditor", **asked))[1] == "none"


def test_a_refusal_says_nothing_of_a_mark(fake: Any) -> None:
    response = fake.http().post("/v1/completions", json={"model": "none", "prompt": "Once"})
    assert said(response) == (None, None)


@pytest.mark.parametrize("route", BODIES)
def test_the_headers_are_described(fake: Any, route: str) -> None:
    paths = fake.http().get("/openapi.json").json()["paths"]
    headers = paths[f"/v1/{route}"]["post"]["responses"]["200"]["headers"]
    names = ("X-TTMark-Status", "X-TTMark-Detectability")
    for name, value in zip(names, said(post(fake, route)), strict=True):
        assert value in headers[name]["schema"]["enum"]
