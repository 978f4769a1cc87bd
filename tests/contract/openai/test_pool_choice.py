"""Which key of a pool marks a completion, and that the answer does not say which."""

from typing import Any

import numpy as np
import pytest

from ttmark.detect_service.paper_detectors import direct
from ttmark.shared.keys.records import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.profile import Profile

REQUEST = {"model": "tiny", "prompt": "Once", "max_tokens": 16, "top_k": 4, "ignore_eos": True}


def _with_pool(service: Any, size: int) -> tuple[bytes, ...]:
    """Gives the tenant a key `acme-pool`; its PRF keys."""
    fingerprint = service.generator.tokenizer.fingerprint
    profile = Profile(scheme="synthid", block_size=2, tokenizer_fingerprint=fingerprint, pool=size)
    keys = tuple(b"pool" + number.to_bytes(12, "big") for number in range(size))
    version = UnlockedVersion(1, KeyState.PRIMARY, *keys)
    service.keys.keys["acme-pool"] = UnlockedKey("acme-pool", "acme", profile, 1, (version,))
    return keys


@pytest.fixture
def pooled(fake: Any) -> Any:
    yield fake
    fake.keys.keys.pop("acme-pool", None)


def _post(service: Any, **change: Any) -> Any:
    body = REQUEST | {"watermark": {"key_id": "acme-pool"}} | change
    response = service.http().post("/v1/completions", json=body)
    assert response.status_code == 200, response.text
    return response


def _numbers(service: Any, keys: tuple[bytes, ...], **change: Any) -> list[int]:
    """The pool keys of a request's completions."""
    service.generator.requests.clear()
    _post(service, **change)
    made = sorted(service.generator.requests, key=lambda request: int(request.request_id.split("-")[-1]))
    return [keys.index(request.marking.prf_key) for request in made]


def test_the_choices_of_a_prompt_have_different_keys_as_long_as_there_are_so_many(pooled: Any) -> None:
    keys = _with_pool(pooled, 8)
    assert sorted(_numbers(pooled, keys, n=8)) == list(range(8))
    assert len(set(_numbers(pooled, keys, n=5, seed=3))) == 5
    keys = _with_pool(pooled, 4)
    assert sorted(_numbers(pooled, keys, n=8)) == sorted(2 * list(range(4)))


def test_completions_draw_their_keys_uniformly(pooled: Any) -> None:
    keys = _with_pool(pooled, 4)
    drawn = [_numbers(pooled, keys)[0] for _ in range(100)]
    # Each of the four is drawn less than eight times once in 10**5 runs.
    assert min(np.bincount(drawn, minlength=4)) >= 8


def test_a_seed_repeats_the_keys_of_the_same_prompt_and_no_others(pooled: Any) -> None:
    keys = _with_pool(pooled, 4096)
    first = _numbers(pooled, keys, seed=7, n=3)
    assert _numbers(pooled, keys, seed=7, n=3) == first
    assert _numbers(pooled, keys, seed=7, n=1) == first[:1]
    assert _numbers(pooled, keys, seed=8, n=1) != first[:1]
    # Who sends one seed with every prompt does not get one key with all of them.
    assert _numbers(pooled, keys, seed=7, prompt="Twice", n=1) != first[:1]
    others = [b"other" + number.to_bytes(11, "big") for number in range(4096)]
    version = UnlockedVersion(2, KeyState.PRIMARY, *others)
    held = pooled.keys.keys["acme-pool"]
    pooled.keys.keys["acme-pool"] = UnlockedKey("acme-pool", "acme", held.profile, 2, (version,))
    assert _numbers(pooled, tuple(others), seed=7, n=1) != first[:1]


def test_the_answer_and_the_audit_trail_do_not_say_which_key(pooled: Any) -> None:
    blocks, events = [], []
    for _ in range(8):
        _with_pool(pooled, 64)
        pooled.audit.clear()
        blocks.append(_post(pooled).json()["watermark"])
        events.append([(event.action, event.key_id, event.version, event.tokens) for event in pooled.audit])
    assert len({str(block) for block in blocks}) == len({str(event) for event in events}) == 1
    _with_pool(pooled, 1)
    assert blocks[0].keys() == _post(pooled).json()["watermark"].keys()


def test_what_the_engine_writes_is_found_with_one_key_of_the_pool(engine_service: Any) -> None:
    _with_pool(engine_service, 16)
    answer = _post(engine_service, n=4, max_tokens=160, top_k=8, return_token_ids=True, seed=1).json()
    key = engine_service.keys.keys["acme-pool"]
    texts = [np.array(choice["token_ids"]) for choice in answer["choices"]]
    tried = [direct(0, -5.0)(key, [key.primary], text, None)[0] for text in texts]
    assert all(len(one.fired) == 1 and one.evidence.log10_p < -5.0 for one in tried)
    assert len({one.pool_key for one in tried}) == 4
    engine_service.keys.keys.pop("acme-pool")
