"""Who chooses the tokens learns nothing about the key from them: those blocks carry no mark, and say so."""

from typing import Any

import pytest

CHOSEN = {str(token): 100.0 for token in range(29)}
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 24}
BODIES: dict[str, dict[str, Any]] = {
    "completions": {"prompt": "Once", "max_tokens": 24},
    "chat/completions": CHAT,
    "responses": {"input": "Hi", "max_output_tokens": 24},
}
WORDS = {"type": "array", "items": {"enum": ["bold", "calm", "dull", "evil"]}, "minItems": 12}


def post(service: Any, route: str, **change: Any) -> Any:
    body = {"model": "tiny", "seed": 1, "ignore_eos": True} | BODIES[route] | change
    response = service.http().post(f"/v1/{route}", json=body)
    assert response.status_code == 200, response.text
    return response.json()["watermark"]


@pytest.mark.parametrize("route", BODIES)
def test_the_rule_holds_on_every_route(real: Any, route: str) -> None:
    block = post(real, route, logit_bias=CHOSEN)
    assert block["reasons"]["confined"] > 0
    assert block["watermarked_blocks"] == 0
    assert block["status"] == "unwatermarked"
    assert block["key_id"] == "acme-main"


def test_a_schema_of_a_few_words_chooses_too(real: Any) -> None:
    named = {"type": "json_schema", "json_schema": {"name": "words", "schema": WORDS}}
    block = post(real, "chat/completions", response_format=named, ignore_eos=False, max_tokens=60)
    assert block["reasons"]["confined"] > 0
    assert block["status"] in ("partial", "unwatermarked")


@pytest.mark.parametrize("biases", [{}, {"7": -100.0}, {str(token): -100.0 for token in range(64)}])
def test_a_few_banned_tokens_leave_the_watermark_on(real: Any, biases: dict[str, float]) -> None:
    block = post(real, "completions", logit_bias=biases)
    assert block["watermarked_blocks"] > 0
    assert "confined" not in block["reasons"]


def test_a_text_that_carries_no_watermark_anyway_says_its_own_reason(real: Any) -> None:
    assert post(real, "completions", logit_bias=CHOSEN, temperature=0)["reasons"].keys() == {"greedy"}
