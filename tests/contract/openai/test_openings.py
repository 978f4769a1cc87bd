"""What an answer says of its opening, and which answers have one."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.contract.openai.conftest import clean

REQUEST = {"model": "tiny", "prompt": "Once", "max_tokens": 60, "top_k": 4, "seed": 1, "ignore_eos": True}


@pytest.fixture(scope="module")
def opening_service(serve: Callable[..., Any], build: Callable[..., Any], engine: Any) -> Any:
    return serve(build(engine, opening_bits=10.0))


@pytest.fixture
def opened(opening_service: Any) -> Iterator[Any]:
    yield from clean(opening_service)


def _block(service: Any, **change: Any) -> dict[str, Any]:
    response = service.http().post("/v1/completions", json=REQUEST | change)
    assert response.status_code == 200, response.text
    block: dict[str, Any] = response.json()["watermark"]
    return block


def test_blocks_of_the_opening_are_counted_apart_and_leave_the_answer_watermarked(opened: Any) -> None:
    block = _block(opened, top_k=50)
    assert block["reasons"].keys() <= {"opening", "warm_up"}
    assert block["reasons"]["opening"] >= 1
    assert block["watermarked_blocks"] + sum(block["reasons"].values()) == block["blocks"] == 30
    assert block["status"] == "watermarked"


def test_the_less_there_is_to_choose_the_longer_an_opening_is(opened: Any) -> None:
    assert _block(opened)["reasons"]["opening"] >= 3  # blocks of two tokens out of four: 4 bits at most


def test_an_answer_that_ends_within_its_opening_is_unwatermarked(opened: Any) -> None:
    block = _block(opened, max_tokens=2, top_k=1)
    assert block["reasons"] == {"opening": 1}
    assert (block["status"], block["detectability"]) == ("unwatermarked", "none")


def test_a_short_answer_has_a_short_opening(opened: Any) -> None:
    assert _block(opened, max_tokens=8)["reasons"]["opening"] < _block(opened)["reasons"]["opening"]


def test_beside_a_schema_there_is_no_opening(opened: Any) -> None:
    schema = {"name": "words", "schema": {"type": "string", "minLength": 20, "maxLength": 20}}
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Once"}],
        "response_format": {"type": "json_schema", "json_schema": schema},
    }
    response = opened.http().post("/v1/chat/completions", json=body)
    assert response.status_code == 200, response.text
    assert "opening" not in response.json()["watermark"]["reasons"]


def test_the_metrics_count_blocks_of_openings(opened: Any) -> None:
    opening = _block(opened)["reasons"]["opening"]
    value = opened.registry.get_sample_value("ttmark_gen_blocks_total", {"outcome": "opening"})
    assert value is not None
    assert value >= opening
