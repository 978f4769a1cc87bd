"""How detectable an answer is: the word for everybody, the number for those who see evidence."""

import json
from typing import Any

import pytest

from tests.contract.openai.fake_generator import byte_tokenizer
from tests.contract.openai.test_manifests import texts
from ttmark.gen_service.api.watermark_report import ReceiptRule
from ttmark.shared.client import AsyncClient, Client
from ttmark.shared.watermark import detect_direct

SAMPLING = {"model": "tiny", "top_k": 4, "temperature": 1.0, "ignore_eos": True, "return_token_ids": True}
LONG = {**SAMPLING, "prompt": "Once", "max_tokens": 150}
MESSAGES = [{"role": "user", "content": "Once"}]
BODIES: dict[str, dict[str, Any]] = {
    "completions": LONG,
    "chat/completions": {**SAMPLING, "messages": MESSAGES, "max_tokens": 150},
    "responses": {**SAMPLING, "input": "Once", "max_output_tokens": 150},
}


def _exact(service: Any, text: str) -> float:
    """Of a text as whoever gets it has it read."""
    key, read = service.keys.get("acme-main"), byte_tokenizer().encode(text)
    return detect_direct(key.profile.watermark(), key.primary.prf_key, read, phase="any").log10_p


def _post(service: Any, route: str, token: str, **change: Any) -> dict[str, Any]:
    response = service.http(token).post(f"/v1/{route}", json=BODIES[route] | change)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def _events(service: Any, route: str, token: str, **change: Any) -> list[dict[str, Any]]:
    body = BODIES[route] | change | {"stream": True}
    text = service.http(token).post(f"/v1/{route}", json=body).text
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("route", BODIES)
def test_an_answer_says_its_exact_p_value_to_those_who_see_evidence(service: Any, route: str) -> None:
    answer = _post(service, route, "auditor", seed=5)
    (text,) = texts(answer)
    block = answer["watermark"]
    assert block["log10_p"] == _exact(service, text)
    assert block["detectability"] == ReceiptRule().word(block["log10_p"])
    assert "choices" not in block


@pytest.mark.parametrize("route", BODIES)
def test_a_marked_text_of_the_engine_is_strong(real: Any, route: str) -> None:
    assert _post(real, route, "author", seed=5)["watermark"]["detectability"] == "strong"


@pytest.mark.parametrize("route", BODIES)
@pytest.mark.parametrize("stream", [False, True])
def test_others_get_the_word_alone(fake: Any, route: str, stream: bool) -> None:
    if stream:
        last = _events(fake, route, "author")[-1]
        block = last.get("response", last)["watermark"]
    else:
        block = _post(fake, route, "author")["watermark"]
    assert block["detectability"] == "none"  # the fake marks nothing
    assert "log10_p" not in block


@pytest.mark.parametrize("route", BODIES)
def test_a_stream_says_the_same_in_its_last_event(service: Any, route: str) -> None:
    whole = _post(service, route, "auditor", seed=6)["watermark"]
    last = _events(service, route, "auditor", seed=6)[-1]
    assert last.get("response", last)["watermark"] == whole
    assert whole["log10_p"] <= 0


def test_several_choices_have_a_receipt_each_and_the_response_that_of_the_hardest(service: Any) -> None:
    answer = _post(service, "completions", "auditor", seed=7, n=3)
    exact = [_exact(service, text) for text in texts(answer)]
    assert [choice["log10_p"] for choice in answer["watermark"]["choices"]] == exact
    assert len(set(exact)) == 3
    assert answer["watermark"]["log10_p"] == max(exact)
    streamed = _events(service, "completions", "auditor", seed=7, n=3)[-1]
    assert streamed["watermark"] == answer["watermark"]


def test_a_text_that_reads_back_as_other_tokens_is_not_called_strong(real: Any) -> None:
    """Its tokens, which nobody sees, carry the mark: bytes that are no characters."""
    answer = _post(real, "completions", "auditor", seed=5, top_k=100, max_tokens=250)
    key, (choice,) = real.keys.get("acme-main"), answer["choices"]
    of_ids = detect_direct(key.profile.watermark(), key.primary.prf_key, choice["token_ids"]).log10_p
    assert of_ids < -3
    assert "\ufffd" in choice["text"]
    assert answer["watermark"]["detectability"] == "none"


def test_choices_have_words_without_numbers_for_others(fake: Any) -> None:
    block = _post(fake, "chat/completions", "author", n=2)["watermark"]
    assert block["choices"] == [{"detectability": "none"}] * 2


@pytest.mark.parametrize("change", [{"temperature": 0}, {"watermark": {"enabled": False}}])
def test_what_was_not_to_be_marked_is_not_detectable_and_has_no_p_value(service: Any, change: Any) -> None:
    block = _post(service, "completions", "auditor", **change)["watermark"]
    assert block["detectability"] == "none"
    assert "log10_p" not in block
    assert block["reasons"]


def test_a_text_that_is_too_short_to_score_has_a_p_value_of_one(service: Any) -> None:
    block = _post(service, "completions", "auditor", max_tokens=1)["watermark"]
    assert (block["detectability"], block["log10_p"]) == ("none", 0.0)


def test_no_verdict_on_a_text_that_a_schema_dictates(real: Any) -> None:
    schema = {"name": "said", "schema": {"const": "word " * 20}}
    dictated = {"response_format": {"type": "json_schema", "json_schema": schema}, "ignore_eos": False}
    block = _post(real, "chat/completions", "author", **dictated)["watermark"]
    assert block["key_id"] == "acme-main"
    assert not block.keys() & {"detectability", "log10_p", "choices"}
    seen = _post(real, "chat/completions", "auditor", **dictated)["watermark"]
    assert seen["log10_p"] <= 0


async def test_both_clients_of_ours_read_it(real: Any) -> None:
    with Client(real.url, "auditor") as client:
        block = client.complete({**LONG, "seed": 5}).watermark
        *_, last = client.stream_chat({**BODIES["chat/completions"], "seed": 5})
    async with AsyncClient(real.url, "auditor") as asynchronous:
        same = (await asynchronous.complete({**LONG, "seed": 5})).watermark
    assert block is not None
    assert block == same
    assert (block.detectability, last.watermark and last.watermark.detectability) == ("strong", "strong")
    assert block.log10_p is not None
    assert block.log10_p < -8


def test_answers_are_counted_by_length_and_word_and_their_evidence_by_model(real: Any) -> None:
    def value(name: str, **labels: str) -> float:
        return real.registry.get_sample_value(f"ttmark_gen_{name}", {"model": "tiny"} | labels)

    def counted() -> list[float]:
        return [
            value("receipts_total", length="100-199", detectability="strong"),
            value("receipts_total", length="0-49", detectability="none"),
            value("evidence_decades_count"),
            value("evidence_decades_sum"),
        ]

    before = counted()
    block = _post(real, "completions", "auditor", seed=5)["watermark"]
    _post(real, "completions", "auditor", temperature=0, max_tokens=4)
    strong, none, scored, decades = (now - then for now, then in zip(counted(), before, strict=True))
    assert (strong, none, scored) == (1, 1, 1)
    assert decades == pytest.approx(-block["log10_p"])
