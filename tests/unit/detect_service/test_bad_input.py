"""Hand-made bad inputs on every detection route: the documented problem, never a 5xx."""

from itertools import product
from typing import Any

from tests.harness.detection_routes import route_of

MODES = ("direct", "aligned", "localized")
ONE = {"inputs": [{"text": "a"}]}
MALFORMED: list[Any] = [
    *(None, [], {"inputs": [{"text": 7}]}, {"inputs": [{"text": "a", "id": "x" * 300}]}),
    *({"inputs": [{"token_ids": ids}]} for ids in ([1.5], [2**32 - 1], "a", ["1"], [True])),
    *({**ONE, "normalize": odd} for odd in ("perhaps", 0.0, "true")),
    *({**ONE, "fpr": odd} for odd in ("0.01", True)),
    *({**ONE, **odd} for odd in ({"keys": []}, {"phase": False})),
]
BAD: list[tuple[str, dict[str, object], str, int, str | None]] = [
    ("direct", {"inputs": []}, "full", 422, "inputs"),
    ("direct", {"inputs": [{}]}, "full", 422, "inputs[0]"),
    ("direct", {"inputs": [{"text": "a", "token_ids": [1]}]}, "full", 422, "inputs[0]"),
    ("direct", {**ONE, "unknown": 1}, "full", 422, "unknown"),
    ("direct", {**ONE, "fpr": 0}, "full", 422, "fpr"),
    ("direct", {**ONE, "fpr": 2}, "full", 422, "fpr"),
    ("direct", {"inputs": [{"token_ids": [-1]}]}, "full", 422, "inputs[0].token_ids[0]"),
    ("direct", {"inputs": [{"text": "a"}] * 257}, "full", 422, "inputs"),
    ("direct", {**ONE, "keys": ["nobody"]}, "full", 404, "keys[0]"),
    ("direct", {**ONE, "keys": ["a-one", "b-one"]}, "full", 404, "keys[1]"),
    ("direct", {**ONE, "keys": ["a-foreign"]}, "full", 422, "keys[0]"),
    ("direct", ONE, "c", 422, "inputs"),
    ("direct", ONE, "empty", 404, None),
    ("direct", {"inputs": [{"text": "a" * 5001}], "keys": ["a-one"]}, "full", 413, "inputs[0]"),
    ("direct", {**ONE, "evidence": "blocks"}, "verdict", 403, None),
    ("direct", ONE, "none", 403, None),
    ("aligned", {**ONE, "beta": -1}, "full", 422, "beta"),
    ("aligned", {**ONE, "beta": 101}, "full", 422, "beta"),
    ("aligned", {**ONE, "beta": "five"}, "full", 422, "beta"),
    ("aligned", {**ONE, "beta": 4.5}, "verdict", 422, "beta"),
    ("localized", {**ONE, "method": "guess"}, "full", 422, "method"),
    ("combined", {**ONE, "phase": 0}, "full", 422, "phase"),
    ("combined", {**ONE, "beta": 5.0}, "full", 422, "beta"),
    ("combined", {**ONE, "method": "scan"}, "full", 422, "method"),
    ("direct", {**ONE, "conversation": True}, "full", 422, "conversation"),
    ("aligned", {**ONE, "conversation": True}, "full", 422, "conversation"),
    ("localized", {**ONE, "conversation": True}, "full", 422, "conversation"),
    ("combined", {**ONE, "conversation": True, "evidence": "blocks"}, "full", 422, None),
    ("combined", {**ONE, "conversation": True, "case": True}, "full", 422, None),
]


async def test_bad_input_is_a_problem_that_names_the_field(service) -> None:
    for mode, body, token, status, param in BAD:
        response = await service.post(route_of(mode), body, token)
        assert response.status_code == status, (mode, body, response.text)
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json().get("param") == param, (mode, body)


async def test_a_malformed_body_is_a_problem(service) -> None:
    for mode, body in product(MODES, MALFORMED):
        response = await service.post(f"/v1/detect/{mode}", body)
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


async def test_largest_token_ids_are_examined_under_a_key_whose_vocabulary_is_not_known(service) -> None:
    body = {"inputs": [{"token_ids": [2**32 - 2, 2**32 - 3, 0] * 30}], "keys": ["a-foreign"]}
    for mode in MODES:
        (result,) = await service.results(mode, body)
        assert result.verdict in ("not_detected", "too_short"), mode


async def test_token_ids_outside_the_vocabulary_are_refused_with_its_bound(service):
    inputs = [{"token_ids": [1, 2, 255]}, {"token_ids": [1, 256]}]
    for token in ("full", "verdict"):
        response = await service.direct({"inputs": inputs, "keys": ["a-one", "a-two"]}, token)
        assert (response.status_code, response.json()["param"]) == (422, "inputs[1].token_ids")
        assert "below 256" in response.json()["detail"]
