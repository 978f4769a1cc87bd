"""A text made with one key of a pool is found in every mode; the answer names the key, and its payload."""

import numpy as np

from tests.harness.detection_routes import route_of
from tests.unit.detect_service.conftest import Service

POOL = 16


def marked(service: Service, number: int, tokens: int = 300, key_id: str = "d-pool") -> str:
    return service.marked(key_id, tokens, number=number)


async def test_a_genuine_text_is_found_in_every_mode_on_its_own_key_alone(service, asked):
    """Its payload is read; a number that was drawn is none."""
    mode, options = asked
    for token, key_id, number, payload in (
        ("pool", "d-pool", 0, None),
        ("pool", "d-pool", 11, None),
        ("payload", "e-payload", 0, 0),
        ("payload", "e-payload", 11, 11),
        ("payload", "e-pool", 6, None),
    ):
        text = marked(service, number, key_id=key_id)
        result = await service.one(mode, text, token, evidence="blocks", **options)
        assert (result.verdict, result.key.key_id, result.pool_keys_found) == ("watermarked", key_id, 1)
        assert (result.key.pool_key, result.key.payload) == (number, payload)
        if token == "pool":
            assert result.hypotheses == 3 * POOL * (2 if asked == ("direct", {}) else 1)
        passages = {(segment.key.pool_key, segment.key.payload) for segment in result.segments or ()}
        assert passages <= {(number, payload)}
        assert np.mean([block.score for block in result.evidence]) > 1.0


async def test_a_text_woven_from_answers_under_two_keys_has_less_than_half_of_the_evidence(service):
    """Whoever mixes two answers leaves each key a fraction of the text: the price of a pool."""
    one, other = marked(service, 2), marked(service, 9)
    woven = "".join(one[at : at + 60] + other[at + 60 : at + 120] for at in range(0, len(one), 120))
    body = {"inputs": [{"text": one}, {"text": woven}]}
    whole, mixed = await service.results("combined", body, "pool")
    assert whole.verdict == "watermarked"
    assert mixed.log10_e < whole.log10_e / 2


async def test_a_text_of_several_keys_fires_on_each_and_its_passages_alone_have_payloads(service, asked):
    mode, options = asked
    for key_id, token, numbers in (("d-pool", "pool", (2, 9, 14)), ("e-payload", "payload", (2, 9))):
        text = "".join(marked(service, number, 260, key_id) for number in numbers)
        payloads = numbers if token == "payload" else [None] * 3
        result = await service.one(mode, text, token, **options)
        found = (result.verdict, result.pool_keys_found, result.key.payload)
        assert found == ("watermarked", len(numbers), None)
        if result.segments is not None:
            passages = [(segment.key.pool_key, segment.key.payload) for segment in result.segments]
            assert passages == list(zip(numbers, payloads, strict=True))


async def test_a_caller_without_the_scope_learns_no_pool_key_and_no_payload(service, mode):
    inputs = [{"text": marked(service, 5)}, {"text": marked(service, 6) + marked(service, 7)}]
    response = await service.post(route_of(mode), {"inputs": inputs, "normalize": False}, "d")
    results = response.json()["results"]
    assert [result["verdict"] for result in results] == ["watermarked"] * 2
    assert all(result["key"] is None and result["pool_keys_found"] is None for result in results)
    assert len({result["hypotheses"] for result in results}) == 1
    inputs = [{"id": "d", "text": marked(service, number, key_id="e-payload")} for number in range(4)]
    response = await service.post(route_of(mode), {"inputs": inputs, "normalize": False}, "e")
    first, *others = response.json()["results"]
    for result in (first, *others):
        del result["normalization"]  # it counts the text's doubled spaces
    assert (first["verdict"], first["key"]) == ("watermarked", None)
    assert others == [first] * 3


async def test_keys_are_listed_with_what_they_take(service):
    keys = [
        key
        for token in ("pool", "payload")
        for key in (await service.client.get("/v1/keys", headers=service.headers(token))).json()["keys"]
    ]
    listed = {key["key_id"]: (key["pool"], key["payloads"]) for key in keys}
    assert listed == {"d-pool": (POOL, False), "e-payload": (POOL, True), "e-pool": (POOL, False)}
