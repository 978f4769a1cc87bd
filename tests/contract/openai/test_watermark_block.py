"""What an answer says of its mark: block, receipt, headers, the pieces of a stream, an opening."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.openai.composed import BODIES, build_service, texts
from tests.contract.openai.fake_generator import FakeGenerator
from ttmark.gen_service.api.plan.watermark_report import ReceiptRule
from ttmark.shared.client import AsyncClient, Client
from ttmark.shared.unknown_tokens import read_ids
from ttmark.shared.watermark.detectors.block_scores import detect_direct

NARROW = {"top_k": 4, "temperature": 1.0, "ignore_eos": True, "return_token_ids": True}
LONG = NARROW | {"tokens": 150}
UNMARKED: list[dict[str, Any]] = [{"temperature": 0}, {"watermark": {"enabled": False}}]


def exact(service: Any, text: str) -> float:
    """Of a text as whoever gets it has it read."""
    key, read = service.keys.get("acme-main"), read_ids(service.generator.tokenizer, text)
    return detect_direct(key.profile.watermark(), key.primary.prf_key, read, phase="any").log10_p


@pytest.mark.parametrize("route", BODIES)
def test_an_answer_says_its_exact_p_value_to_those_who_see_evidence(service: Any, route: str) -> None:
    answer = service.answer(route, "auditor", seed=5, **LONG)
    (text,) = texts(answer)
    block = answer["watermark"]
    assert block["log10_p"] == exact(service, text)
    assert block["detectability"] == ReceiptRule().word(block["log10_p"])
    assert isinstance(service.generator, FakeGenerator) or block["detectability"] == "strong"
    assert "choices" not in block
    assert service.events(route, "auditor", seed=5, **LONG)[-1]["watermark"] == block


@pytest.mark.parametrize("route", BODIES)
def test_others_get_the_word_alone(fake: Any, route: str) -> None:
    for block in (fake.block(route), fake.events(route)[-1]["watermark"]):
        assert block["detectability"] == "none"  # the fake marks nothing
        assert "log10_p" not in block
    assert fake.block("completions", n=2)["choices"] == [{"detectability": "none"}] * 2


def test_several_choices_have_a_receipt_each_and_the_response_that_of_the_hardest(service: Any) -> None:
    answer = service.answer("completions", "auditor", seed=7, n=3, **LONG)
    each = [exact(service, text) for text in texts(answer)]
    assert [choice["log10_p"] for choice in answer["watermark"]["choices"]] == each
    assert len(set(each)) == 3
    assert answer["watermark"]["log10_p"] == max(each)
    streamed = service.events("completions", "auditor", seed=7, n=3, **LONG)[-1]
    assert streamed["watermark"] == answer["watermark"]


@pytest.mark.parametrize("top_k", [0, 200])
def test_a_random_model_marks_its_tokens_and_a_text_that_reads_back_as_others_is_not_called_strong(
    real: Any, top_k: int
) -> None:
    """Nobody sees the tokens, which carry the mark: bytes that are no characters."""
    answer = real.answer("completions", "auditor", seed=5, **LONG | {"top_k": top_k})
    key, (choice,) = real.keys.get("acme-main"), answer["choices"]
    of_ids = detect_direct(key.profile.watermark(), key.primary.prf_key, choice["token_ids"]).log10_p
    assert of_ids < -50
    assert "\ufffd" in choice["text"]
    block = answer["watermark"]
    assert (block["log10_p"], block["detectability"]) == (exact(real, choice["text"]), "none")


@pytest.mark.parametrize("change", UNMARKED)
def test_what_was_not_to_be_marked_is_not_detectable_and_has_no_p_value(service: Any, change: Any) -> None:
    block = service.block("completions", "auditor", **change)
    assert block["detectability"] == "none"
    assert "log10_p" not in block
    assert block["reasons"]


def test_a_text_that_is_too_short_to_score_has_a_p_value_of_one(service: Any) -> None:
    block = service.block("completions", "auditor", tokens=1)
    assert (block["detectability"], block["log10_p"]) == ("none", 0.0)


def test_no_verdict_on_a_text_that_a_schema_dictates(real: Any) -> None:
    schema = {"name": "said", "schema": {"const": "word " * 20}}
    dictated = {"response_format": {"type": "json_schema", "json_schema": schema}, "tokens": 150}
    block = real.block("chat/completions", **dictated)
    assert block["key_id"] == "acme-main"
    assert not block.keys() & {"detectability", "log10_p", "choices"}
    assert real.block("chat/completions", "auditor", **dictated)["log10_p"] <= 0


async def test_both_clients_of_ours_read_it(real: Any) -> None:
    asked = {"model": "tiny", "seed": 5, "max_tokens": 150, **NARROW}
    with Client(real.url, "auditor") as client:
        block = client.complete(asked | {"prompt": "Once"}).watermark
        *_, last = client.stream_chat(asked | {"messages": [{"role": "user", "content": "Once"}]})
    async with AsyncClient(real.url, "auditor") as asynchronous:
        same = (await asynchronous.complete(asked | {"prompt": "Once"})).watermark
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
    block = real.block("completions", "auditor", seed=5, **LONG)
    real.block("completions", "auditor", temperature=0, tokens=4)
    strong, none, scored, decades = (now - then for now, then in zip(counted(), before, strict=True))
    assert (strong, none, scored) == (1, 1, 1)
    assert decades == pytest.approx(-block["log10_p"])


# Headers, for clients that drop the block.


HEADERS = ("X-Watermark", "X-TTMark-Status", "X-TTMark-Detectability")


def said(response: Any) -> tuple[str | None, ...]:
    return tuple(response.headers.get(name) for name in HEADERS)


@pytest.mark.parametrize("route", BODIES)
@pytest.mark.parametrize("change", [{}, *UNMARKED])
def test_the_headers_are_those_of_the_block_and_a_stream_says_at_its_start_what_it_will_be(
    real: Any, route: str, change: Any
) -> None:
    response = real.post(route, "operator", **NARROW | {"tokens": 120, "seed": 3} | change)
    block = response.json()["watermark"]
    marked = "false" if change else "true"
    assert said(response) == (marked, block["status"], block["detectability"])
    assert (block["status"] == "unwatermarked") == bool(change)
    streamed = real.post(route, "operator", stream=True, **NARROW | {"tokens": 4} | change)
    assert said(streamed) == (marked, "unwatermarked" if change else "pending", None)
    description = real.http().get("/openapi.json").json()["paths"][f"/v1/{route}"]["post"]
    headers = description["responses"]["200"]["headers"]
    for name, value in zip(HEADERS, said(response), strict=True):
        assert value in headers[name]["schema"]["enum"]


def test_headers_of_streams_keep_proxies_from_buffering_and_a_refusal_has_none(fake: Any) -> None:
    headers = fake.post("completions", stream=True).headers
    assert (headers["X-Accel-Buffering"], headers["Cache-Control"]) == ("no", "no-cache")
    assert said(fake.post("completions", model="none")) == (None, None, None)


def test_the_headers_say_no_more_than_the_block_to_those_who_may_not_hear_it(real: Any) -> None:
    schema = {"type": "array", "items": {"type": "integer", "maximum": 9}, "maxItems": 3}
    form = {"type": "json_schema", "json_schema": {"name": "numbers", "schema": schema}}
    asked = {"response_format": form, "top_k": 4, "seed": 3, "tokens": 120}
    assert said(real.post("chat/completions", **asked))[2] is None
    assert said(real.post("chat/completions", "auditor", **asked))[2] == "none"


# What the playground is made of.


@pytest.mark.parametrize("route", ["completions", "chat/completions"])
def test_pieces_of_a_stream_say_whether_they_carry_the_mark_if_they_are_asked(real: Any, route: str) -> None:
    asked = {"tokens": 40, "top_k": 8, "seed": 1, "ignore_eos": True, "return_token_ids": True}
    events = real.events(route, watermark={"show_blocks": True}, **asked)
    pieces = [choice for event in events for choice in event["choices"]]
    marked = [piece["token_ids"] for piece in pieces if piece["watermarked"]]
    assert len(marked) == events[-1]["watermark"]["watermarked_blocks"] > 10
    assert {len(ids) for ids in marked} == {2}, "blocks of the key's profile"
    assert len(marked) < events[-1]["watermark"]["blocks"], "the first blocks have no context"
    for event in real.events(route, **asked):
        assert all("watermarked" not in choice for choice in event["choices"])


def test_there_is_no_playground_unless_it_is_wanted(fake: Any) -> None:
    assert fake.http().get("/playground").status_code == 404


# Openings: what a text begins with before it is marked.

OPENED = {"tokens": 60, "top_k": 4, "seed": 1, "ignore_eos": True}


@pytest.fixture(scope="module")
def opened(serve: Callable[..., Any], engine: Any) -> Any:
    return serve(build_service(engine, opening_bits=10.0))


def test_blocks_of_the_opening_are_counted_apart_and_leave_the_answer_watermarked(opened: Any) -> None:
    block = opened.block("completions", **OPENED | {"top_k": 50})
    assert block["reasons"].keys() <= {"opening", "warm_up"}
    assert block["reasons"]["opening"] >= 1
    assert block["watermarked_blocks"] + sum(block["reasons"].values()) == block["blocks"] == 30
    assert block["status"] == "watermarked"
    value = opened.registry.get_sample_value("ttmark_gen_blocks_total", {"outcome": "opening"})
    assert value is not None
    assert value >= block["reasons"]["opening"]


def test_a_text_that_ends_within_its_opening_is_unwatermarked(opened: Any) -> None:
    response = opened.post("completions", **OPENED | {"tokens": 2, "top_k": 1})
    block = response.json()["watermark"]
    assert block["reasons"] == {"opening": 1}
    assert (block["status"], block["detectability"]) == ("unwatermarked", "none")
    assert said(response) == ("false", "unwatermarked", "none")
