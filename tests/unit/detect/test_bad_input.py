"""Hand-made bad inputs on every detection route: the documented problem, never a 5xx.

What is no JSON, and who may ask at all, the contract tests of the running services have for every route.
"""

import json
from itertools import product

import pytest

MODES = ("direct", "aligned", "localized")
TEXT = b'{"inputs": [{"text": "%s"}], "keys": ["a-one"]}'
VERDICTS = {"watermarked", "not_detected", "too_short"}
ODD_TEXTS = [
    b"",
    b"a",
    b"\\u0000\\u0000",
    b"\\u202eabc\\u202c\\u2066",
    b"\\u200b" * 400,
    b"\\ud83d\\ude00" * 300,
    b"e\\u0301\\u0327" * 300,
    b"\\r\\n" * 900,
    b"ab" * 2000,
]
MALFORMED = [
    b"null",
    b"[]",
    b'{"inputs": [{"token_ids": [1.5]}]}',
    b'{"inputs": [{"token_ids": [4294967295]}]}',
    b'{"inputs": [{"token_ids": "abc"}]}',
    b'{"inputs": [{"text": 7}]}',
    b'{"inputs": [{"text": "a", "id": %s}]}' % json.dumps("x" * 300).encode(),
    b'{"inputs": [{"text": "a"}], "keys": []}',
    b'{"inputs": [{"text": "a"}], "normalize": "perhaps"}',
    b'{"inputs": [{"text": "a"}], "normalize": 0.0}',
    b'{"inputs": [{"text": "a"}], "normalize": "true"}',
    b'{"inputs": [{"text": "a"}], "fpr": "0.01"}',
    b'{"inputs": [{"text": "a"}], "fpr": true}',
    b'{"inputs": [{"text": "a"}], "phase": false}',
    b'{"inputs": [{"token_ids": ["1"]}]}',
    b'{"inputs": [{"token_ids": [true]}]}',
]


async def test_a_malformed_body_is_a_problem(service) -> None:
    headers = {**service.headers(), "Content-Type": "application/json"}
    for mode, body in product(MODES, MALFORMED):
        response = await service.client.post(f"/v1/detect/{mode}", content=body, headers=headers)
        assert response.status_code == 422, (mode, body, response.text)
        assert response.headers["content-type"] == "application/problem+json"


async def test_a_misspelt_field_is_named_first_beside_the_one_that_is_meant(service) -> None:
    for body, message in (
        ({"input": [{"text": "a"}]}, "Unknown field 'input'; did you mean 'inputs'?"),
        ({"inputs": [{"txt": "a"}]}, "Unknown field 'inputs[0].txt'; did you mean 'inputs[0].text'?"),
    ):
        response = await service.client.post("/v1/detect", json=body, headers=service.headers())
        assert response.status_code == 422
        assert message in response.json()["detail"]


async def test_an_odd_text_gets_a_verdict(service) -> None:
    headers = {**service.headers(), "Content-Type": "application/json"}
    for mode, normalize, text in product(MODES, (b"false", b"true"), ODD_TEXTS):
        body = (TEXT % text)[:-1] + b', "normalize": %s, "evidence": "blocks"}' % normalize
        response = await service.client.post(f"/v1/detect/{mode}", content=body, headers=headers)
        assert response.status_code == 200, (mode, text, response.text)
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
