"""Hand-made bad inputs on every detection route: the documented problem, never a 5xx."""

from typing import Any

from tests.harness.detection_routes import route_of

ONE = {"inputs": [{"text": "a"}]}
MALFORMED: list[Any] = [
    *(None, [], {"inputs": [{"text": 7}]}, {"inputs": [{"text": "a", "id": "x" * 300}]}),
    *({"inputs": [{"token_ids": ids}]} for ids in ([1.5], [2**32 - 1], "a", ["1"], [True])),
    *({**ONE, "normalize": odd} for odd in ("perhaps", 0.0, "true")),
    *({**ONE, "fpr": odd} for odd in ("0.01", True)),
    *({**ONE, **odd} for odd in ({"keys": []}, {"phase": False})),
]
BAD: list[tuple[dict[str, object], str, int, str | None]] = [
    ({"inputs": []}, "full", 422, "inputs"),
    ({"inputs": [{}]}, "full", 422, "inputs[0]"),
    ({"inputs": [{"text": "a", "token_ids": [1]}]}, "full", 422, "inputs[0]"),
    ({**ONE, "unknown": 1}, "full", 422, "unknown"),
    ({**ONE, "fpr": 0}, "full", 422, "fpr"),
    ({**ONE, "fpr": 2}, "full", 422, "fpr"),
    ({"inputs": [{"token_ids": [-1]}]}, "full", 422, "inputs[0].token_ids[0]"),
    ({"inputs": [{"text": "a"}] * 257}, "full", 422, "inputs"),
    ({**ONE, "keys": ["nobody"]}, "full", 404, "keys[0]"),
    ({**ONE, "keys": ["a-one", "b-one"]}, "full", 404, "keys[1]"),
    ({**ONE, "keys": ["a-foreign"]}, "full", 422, "keys[0]"),
    (ONE, "c", 422, "inputs"),
    (ONE, "empty", 404, None),
    ({"inputs": [{"text": "a" * 5001}], "keys": ["a-one"]}, "full", 413, "inputs[0]"),
    ({**ONE, "evidence": "blocks"}, "verdict", 403, None),
    (ONE, "none", 403, None),
]
OPTIONS: list[tuple[dict[str, object], str | None]] = [
    ({**ONE, "phase": 0}, "phase"),
    ({**ONE, "beta": 5.0}, "beta"),
    ({**ONE, "method": "scan"}, "method"),
    ({**ONE, "conversation": True, "evidence": "blocks"}, None),
    ({**ONE, "conversation": True, "case": True}, None),
]


async def assert_problem(service, mode, body, token="full", status=422, param=None) -> None:
    response = await service.post(route_of(mode), body, token)
    assert response.status_code == status, (mode, body, response.text)
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json().get("param") == param, (mode, body)


async def test_bad_input_is_a_problem_that_names_the_field(service, mode) -> None:
    for body, *expected in BAD:
        await assert_problem(service, mode, body, *expected)


async def test_options_that_others_have_are_refused(service) -> None:
    for body, param in OPTIONS:
        await assert_problem(service, "combined", body, param=param)


async def test_a_malformed_body_is_a_problem(service, mode) -> None:
    for body in MALFORMED:
        response = await service.post(route_of(mode), body)
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


async def test_largest_token_ids_are_examined_under_a_key_whose_vocabulary_is_not_known(
    service, mode
) -> None:
    body = {"inputs": [{"token_ids": [2**32 - 2, 2**32 - 3, 0] * 30}], "keys": ["a-foreign"]}
    (result,) = await service.results(mode, body)
    assert result.verdict in ("not_detected", "too_short")


async def test_token_ids_outside_the_vocabulary_are_refused_with_its_bound(service, mode):
    inputs = [{"token_ids": [1, 2, 255]}, {"token_ids": [1, 256]}]
    for token in ("full", "verdict"):
        response = await service.post(route_of(mode), {"inputs": inputs, "keys": ["a-one", "a-two"]}, token)
        assert (response.status_code, response.json()["param"]) == (422, "inputs[1].token_ids")
        assert "below 256" in response.json()["detail"]
