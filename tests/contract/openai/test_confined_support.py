"""Who chooses the tokens by `logit_bias` learns nothing about the key from them."""

from typing import Any

import pytest

REQUEST = {"model": "tiny", "prompt": "Once", "max_tokens": 16, "seed": 1, "ignore_eos": True}
CHOSEN = {str(token): 100.0 for token in range(29)}
HELD_DOWN = {str(token): -1.5 for token in range(65)}


def post(service: Any, token: str = "author", **change: Any) -> Any:
    return service.http(token).post("/v1/completions", json=REQUEST | change)


@pytest.mark.parametrize("biases", [CHOSEN, {"7": 5.1}, HELD_DOWN])
def test_confining_the_text_takes_a_scope(service: Any, biases: dict[str, float]) -> None:
    response = post(service, logit_bias=biases)
    assert response.status_code == 403
    error = response.json()["error"]
    assert (error["code"], error["param"]) == ("insufficient_scope", "logit_bias")
    assert "generate:bias" in error["message"]


@pytest.mark.parametrize("biases", [CHOSEN, {"7": 5.1}, HELD_DOWN])
def test_a_confined_text_carries_no_watermark_and_says_why(service: Any, biases: dict[str, float]) -> None:
    block = post(service, "chooser", logit_bias=biases).json()["watermark"]
    assert block["status"] == "unwatermarked"
    assert block["blocks"] == 8  # of the key's block size, as with a watermark
    assert block["reasons"] == {"confined": 8}
    assert block["watermarked_blocks"] == 0
    assert block["key_id"] is None


@pytest.mark.parametrize("token", ["author", "chooser"])
@pytest.mark.parametrize(
    "biases", [{"7": 5.0}, {"7": -100.0}, {str(token): -100.0 for token in range(64)}, {"7": 0.5, "8": -1}]
)
def test_small_biases_and_a_few_banned_tokens_leave_the_watermark_on(
    service: Any, token: str, biases: dict[str, float]
) -> None:
    block = post(service, token, logit_bias=biases).json()["watermark"]
    assert block["key_id"] == "acme-main"
    assert block["watermarked_blocks"] > 0


@pytest.mark.parametrize(
    ("penalty", "bias", "confined"),
    [
        (1, 5, False),
        (1.1, 3.4, False),
        (1.1, 3.6, True),
        (1.4, 0.1, True),
        (2, 0, False),
        (2, -100, False),
        (None, 1.9, False),
        (None, 2.1, True),
    ],
)
def test_beside_a_repetition_penalty_which_holds_down_a_whole_prompt_less_bias_confines(
    fake: Any, penalty: float | None, bias: float, confined: bool
) -> None:
    change = {"model": "tempered", "repetition_penalty": penalty, "logit_bias": {"7": bias}}
    response = post(fake, **change)
    assert response.status_code == (403 if confined else 200)
    assert ("beside a repetition_penalty of" in response.text) is confined
    reasons = post(fake, "chooser", **change).json()["watermark"]["reasons"]
    assert ("confined" in reasons) is confined


def test_the_scope_alone_does_not_switch_the_watermark_off(service: Any) -> None:
    assert post(service, "chooser", watermark={"enabled": False}).status_code == 403
    assert post(service, "chooser").json()["watermark"]["watermarked_blocks"] > 0


@pytest.mark.parametrize(
    ("token", "change"), [("author", {"temperature": 0}), ("operator", {"watermark": {"enabled": False}})]
)
def test_a_text_that_carries_no_watermark_anyway_may_be_confined(
    service: Any, token: str, change: dict[str, Any]
) -> None:
    response = post(service, token, logit_bias=CHOSEN, **change)
    assert response.status_code == 200
    assert "confined" not in response.json()["watermark"]["reasons"]


@pytest.mark.parametrize(
    ("path", "prompt"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
        ("/v1/responses", {"input": "Hi"}),
    ],
)
def test_the_rule_holds_on_every_route(fake: Any, path: str, prompt: dict[str, Any]) -> None:
    body = {"model": "tiny", "logit_bias": CHOSEN} | prompt
    assert fake.http().post(path, json=body).status_code == 403
    assert fake.http("chooser").post(path, json=body).json()["watermark"]["reasons"].keys() == {"confined"}
    assert not fake.generator.requests or fake.generator.requests[0].marking is None


def test_no_usable_key_stays_an_error_however_the_text_is_confined(fake: Any) -> None:
    fake.keys.ready = False
    assert post(fake, "chooser", logit_bias=CHOSEN).status_code == 503
