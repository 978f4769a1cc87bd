"""Hand-made bad inputs on every detection route: the documented problem, never a 5xx."""

import gzip
import json
from itertools import product

import pytest

MODES = ("direct", "aligned", "localized")
TEXT = b'{"inputs": [{"text": "%s"}], "keys": ["a-one"]}'
VERDICTS = {"watermarked", "not_detected", "too_short"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"null", 422),
        (b"[]", 422),
        (b"{", 400),
        (b"\xff", 400),
        (b'{"inputs": [], "inputs": []}', 400),
        (b'{"inputs": [{"text": "a"}], "fpr": NaN}', 400),
        (b'{"inputs": [{"text": "a"}], "fpr": 1e999}', 400),
        (b'{"inputs": [{"token_ids": [%s]}]}' % (b"9" * 5000), 400),
        (TEXT % b"\\ud800", 400),
        (b'{"inputs": ' + b"[" * 1000 + b"]" * 1000 + b"}", 400),
        (b'{"inputs": [{"token_ids": [1.5]}]}', 422),
        (b'{"inputs": [{"token_ids": [4294967295]}]}', 422),
        (b'{"inputs": [{"token_ids": "abc"}]}', 422),
        (b'{"inputs": [{"text": 7}]}', 422),
        (b'{"inputs": [{"text": "a", "id": %s}]}' % json.dumps("x" * 300).encode(), 422),
        (b'{"inputs": [{"text": "a"}], "keys": []}', 422),
        (b'{"inputs": [{"text": "a"}], "normalize": "perhaps"}', 422),
        (b'{"inputs": [{"text": "a"}], "normalize": 0.0}', 422),
        (b'{"inputs": [{"text": "a"}], "normalize": "true"}', 422),
        (b'{"inputs": [{"text": "a"}], "fpr": "0.01"}', 422),
        (b'{"inputs": [{"text": "a"}], "fpr": true}', 422),
        (b'{"inputs": [{"text": "a"}], "phase": false}', 422),
        (b'{"inputs": [{"token_ids": ["1"]}]}', 422),
        (b'{"inputs": [{"token_ids": [true]}]}', 422),
    ],
)
async def test_a_malformed_body_is_a_problem(service, body: bytes, status: int) -> None:
    headers = {**service.headers(), "Content-Type": "application/json"}
    for mode in MODES:
        response = await service.client.post(f"/v1/detect/{mode}", content=body, headers=headers)
        assert response.status_code == status, (mode, response.text)
        assert response.headers["content-type"] == "application/problem+json"


async def test_a_misspelt_field_is_named_first_beside_the_one_that_is_meant(service) -> None:
    for body, message in (
        ({"input": [{"text": "a"}]}, "Unknown field 'input'; did you mean 'inputs'?"),
        ({"inputs": [{"txt": "a"}]}, "Unknown field 'inputs[0].txt'; did you mean 'inputs[0].text'?"),
    ):
        response = await service.client.post("/v1/detect", json=body, headers=service.headers())
        assert response.status_code == 422
        assert message in response.json()["detail"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"a",
        b"\\u0000\\u0000",
        b"\\u202eabc\\u202c\\u2066",
        b"\\u200b" * 400,
        b"\\ud83d\\ude00" * 300,
        b"e\\u0301\\u0327" * 300,
        b"\\r\\n" * 900,
        b"ab" * 2000,
    ],
)
async def test_an_odd_text_gets_a_verdict(service, text: bytes) -> None:
    headers = {**service.headers(), "Content-Type": "application/json"}
    for mode, normalize in product(MODES, (b"false", b"true")):
        body = (TEXT % text)[:-1] + b', "normalize": %s, "evidence": "blocks"}' % normalize
        response = await service.client.post(f"/v1/detect/{mode}", content=body, headers=headers)
        assert response.status_code == 200, (mode, response.text)
        assert response.json()["results"][0]["verdict"] in VERDICTS


async def test_largest_token_ids_are_examined_under_a_key_whose_vocabulary_is_not_known(service) -> None:
    body = {"inputs": [{"token_ids": [2**32 - 2, 2**32 - 3, 0] * 30}], "keys": ["a-foreign"]}
    for mode in MODES:
        (result,) = await service.results(mode, body)
        assert result.verdict in ("not_detected", "too_short"), mode


@pytest.mark.parametrize("token", ["full", "verdict"])
async def test_token_ids_outside_the_vocabulary_are_refused_with_its_bound(service, token: str) -> None:
    inputs = [{"token_ids": [1, 2, 255]}, {"token_ids": [1, 256]}]
    response = await service.direct({"inputs": inputs, "keys": ["a-one", "a-two"]}, token)
    assert response.status_code == 422
    assert response.json()["param"] == "inputs[1].token_ids"
    assert "below 256" in response.json()["detail"]


async def test_a_compressed_body_is_refused_unread(service) -> None:
    headers = {**service.headers(), "Content-Type": "application/json", "Content-Encoding": "gzip"}
    bomb = gzip.compress(bytes(2**20))
    response = await service.client.post("/v1/detect/direct", content=bomb, headers=headers)
    assert response.status_code == 415


@pytest.mark.parametrize("path", ["/v1/detect", *(f"/v1/detect/{mode}" for mode in MODES), "/v1/extract"])
async def test_no_route_opens_without_its_scope(service, path: str) -> None:
    body = {"filename": "a.txt", "content": ""} if path == "/v1/extract" else {"inputs": [{"text": "a"}]}
    for token, status in ((None, 401), ("", 401), ("ttm_wrong", 401), ("none", 403), ("x" * 9999, 401)):
        plain = service.tokens.get(token, token) if token is not None else None
        headers = {} if plain is None else {"Authorization": f"Bearer {plain}"}
        response = await service.client.post(path, json=body, headers=headers)
        assert response.status_code == status, token
