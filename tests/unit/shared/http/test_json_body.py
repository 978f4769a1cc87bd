"""Bodies that are not strict JSON within the limits get a documented 4xx."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttmark.shared.http.request_body import HttpLimits, parse_json
from ttmark.shared.http.service_errors import MalformedJson, TooManyParts

Code = Callable[[httpx.Response], str]
JSON = {"Content-Type": "application/json"}

# Beside those that the contract tests send to every route of the running services.
MALFORMED = {
    "a trailing comma": b'{"name": "a",}',
    "two values": b"{}{}",
    "Infinity": b'{"numbers": [-Infinity]}',
    "a lone low surrogate in a key": b'{"\\uDFFF": 1}',
    "a surrogate in UTF-8": b'{"name": "\xed\xa0\x80"}',
    "UTF-16": '{"name": "a"}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"name": "a"}',
    "deep arrays": b"[" * 9 + b"]" * 9,
    "too many objects": b"[" + b"{}," * 50 + b"{}]",
    "deep objects": b'{"a":' * 300 + b"1" + b"}" * 300,
    "a control character in a string": b'{"name": "a\nb"}',
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
async def test_malformed_json_is_a_400(client: httpx.AsyncClient, code_of: Code, body: bytes) -> None:
    response = await client.post("/v1/greet", content=body[:2000], headers=JSON)
    many = body.count(b"{") > 50
    refused = (413, "request_too_large") if many else (400, "malformed_json")
    assert (response.status_code, code_of(response)) == refused


@pytest.mark.parametrize(
    ("headers", "taken"),
    [
        ({"Content-Type": "application/json"}, True),
        ({"Content-Type": "Application/JSON; charset=utf-8"}, True),
        ({"Content-Type": "application/a+json"}, True),
        ({"Content-Type": "text/plain"}, False),
        ({"Content-Type": "application/x-www-form-urlencoded"}, False),
        ({"Content-Type": ""}, False),
        ({"Content-Type": "application/jsonx"}, False),
        (JSON | {"Content-Encoding": "gzip"}, False),  # and never unpacked
        (JSON | {"Content-Encoding": "br"}, False),
        (JSON | {"Content-Encoding": "identity, gzip"}, False),
    ],
)
async def test_json_is_taken_and_another_or_compressed_body_is_a_415(client, code_of, headers, taken):
    response = await client.post("/v1/greet", content=b'{"name": "a"}', headers=headers)
    assert response.status_code == (200 if taken else 415)
    assert taken or code_of(response) == "unsupported_media_type"


async def test_a_declared_body_over_the_limit_is_a_413_that_names_the_limit(client, code_of):
    response = await client.post("/v1/greet", json={"name": "a" * 2000})
    assert response.status_code == 413
    assert code_of(response) == "request_too_large"
    assert "2000 bytes" in response.text


async def test_a_streamed_body_is_counted_as_it_arrives(client: httpx.AsyncClient, code_of: Code) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 500
            yield b"a" * 500

    response = await client.post("/v1/greet", content=endless(), headers=JSON)
    assert response.status_code == 413
    assert code_of(response) == "request_too_large"
    assert sent <= 3000


async def test_a_body_that_does_not_arrive_in_time_is_a_408(client: httpx.AsyncClient, code_of: Code) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)
        yield b"}"

    response = await client.post("/v1/greet", content=slow(), headers=JSON)
    assert response.status_code == 408
    assert code_of(response) == "request_timeout"


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_whatever_json_can_say_is_read_as_json_reads_it(value: Any) -> None:
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only).encode()
        assert parse_json(text, HttpLimits(max_json_depth=1000)) == value


@given(st.binary(max_size=60) | st.text(alphabet='[]{}":,\\u0d8c1 e', max_size=60).map(str.encode))
def test_no_body_raises_anything_but_malformed_json(body: bytes) -> None:
    with suppress(MalformedJson):
        parse_json(body, HttpLimits(max_json_depth=8))


def test_the_depth_check_ignores_brackets_in_strings() -> None:
    assert parse_json(b'["[[[[", "\\"[[[[\\\\"]', HttpLimits(max_json_depth=1)) == ["[[[[", '"[[[[\\']


def containers(value: Any) -> int:
    """Arrays and objects of a parsed value."""
    if isinstance(value, dict):
        return 1 + sum(map(containers, value.values()))
    return 1 + sum(map(containers, value)) if isinstance(value, list) else 0


@given(
    st.recursive(
        st.text(alphabet='[]{}"\\a/'),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='[{"\\'), inner),
        max_leaves=12,
    )
)
def test_containers_are_counted_as_a_parser_counts_them(value: Any) -> None:
    text, count = json.dumps([value]).encode(), containers([value])
    assert parse_json(text, HttpLimits(max_json_depth=99, max_json_containers=max(count, 10))) == [value]
    if count > 10:
        with pytest.raises(TooManyParts, match=r"arrays and objects .* jobs .* bulk files"):
            parse_json(text, HttpLimits(max_json_depth=99, max_json_containers=count - 1))


def test_very_many_strings_are_refused_before_they_are_made() -> None:
    with pytest.raises(TooManyParts, match="more strings than the limit of 50"):
        parse_json(b"[" + b",".join([b'"a"'] * 51) + b"]", HttpLimits(max_json_containers=5))
    assert len(parse_json(b"[" + b",".join([b'"a"'] * 50) + b"]", HttpLimits(max_json_containers=5))) == 50


def test_equal_numbers_of_a_long_body_are_one_object() -> None:
    body = b"[" + b",".join([b"300", b"-7", b"12345678901234567890"] * 30_000) + b"]"
    found = parse_json(body, HttpLimits())
    assert found == [300, -7, 12345678901234567890] * 30_000
    assert len(set(map(id, found))) == 3


@pytest.mark.long
@pytest.mark.parametrize("body", [b'["' + b'\\"' * 1_000_000, b"[" * 2_000_000, b'["' + b"\\" * 1_999_999])
def test_hostile_bodies_of_two_megabytes_are_refused_in_linear_time(body: bytes) -> None:
    started = time.process_time()
    with pytest.raises(MalformedJson):
        parse_json(body, HttpLimits(max_json_depth=32))
    assert time.process_time() - started < 5
