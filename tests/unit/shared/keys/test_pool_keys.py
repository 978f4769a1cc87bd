"""PRF keys from secrets: golden vectors, derived again here in the words of the specification."""

import hashlib
import hmac
import json
import struct
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.harness.golden import GOLDEN, key_vectors
from ttmark.shared.keys.key_codec import KIND, derive_prf_keys
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.envelope import open_envelope

FILE = json.loads((Path(GOLDEN) / "keys.json").read_text())


def with_pool(pool: object) -> Profile:
    return Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": "ab" * 32, "pool": pool})


def hkdf(secret: bytes, info: bytes) -> bytes:
    """RFC 5869 with SHA-256, no salt, 16 bytes."""
    extracted = hmac.new(bytes(32), secret, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()[:16]


def test_golden_keys_are_reproduced() -> None:
    assert key_vectors() == FILE["profiles"]


@pytest.mark.parametrize("record", FILE["profiles"], ids=lambda record: str(record["profile"].get("pool")))
def test_golden_keys_follow_from_the_specification_alone(record: dict[str, object]) -> None:
    secret, canonical = bytes.fromhex(FILE["secret"]), record["canonical"].encode()
    assert json.loads(canonical) == record["profile"]
    pooled = "pool" in record["profile"]
    for number, key in record["prf_keys"].items():
        info = canonical + b"\x00" + struct.pack("<I", int(number)) if pooled else canonical
        assert hkdf(secret, info).hex() == key


def test_a_profile_without_a_pool_is_what_it_was_and_all_keys_of_all_pools_differ() -> None:
    assert with_pool(1) == Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": "ab" * 32})
    assert with_pool(1).canonical() == (
        b'{"block_size":2,"context_width":4,"parameters":{"blend":1.0,"depth":30,"weighted":false},'
        b'"scheme":"synthid","spec_version":1,"tokenizer_fingerprint":"' + b"ab" * 32 + b'"}'
    )
    keys = [key for pool in (1, 2, 16, 4096) for key in derive_prf_keys(bytes(32), with_pool(pool))]
    assert len(set(keys)) == len(keys) == 1 + 2 + 16 + 4096


@pytest.mark.parametrize("pool", [0, -1, 4097, 1.5, None, "many"])
def test_a_pool_is_a_number_from_1_to_4096(pool: object) -> None:
    with pytest.raises(ValidationError):
        with_pool(pool)


def with_payloads(pool: int) -> Profile:
    return Profile.model_validate({**with_pool(pool).stored(), "payloads": True})


def test_keys_that_take_payloads_are_others_than_those_that_are_drawn() -> None:
    drawn, taken = with_pool(16), with_payloads(16)
    assert taken.canonical().count(b'"payloads":true,"pool":16') == 1
    assert b"payloads" not in drawn.canonical()
    assert drawn.profile_id != taken.profile_id
    assert set(derive_prf_keys(bytes(32), drawn)).isdisjoint(derive_prf_keys(bytes(32), taken))


async def test_a_record_keeps_pool_and_payloads_and_is_written_as_before_without(store, ring, kek):
    for key_id, profile in (("one", with_pool(1)), ("many", with_pool(16)), ("taken", with_payloads(16))):
        await ring.create(key_id, tenant="t", profile=profile)
        await ring.rotate(key_id)
        opened = await ring.open(key_id)
        assert opened.profile == (await ring.info(key_id)).profile == profile
        assert [len(version.prf_keys) for version in opened.versions] == [profile.pool] * 2
        stored = await store.get(KIND, key_id)
        assert stored is not None
        body = (await open_envelope(kek, KIND, key_id, stored.payload, stored.revision)).body["profile"]
        said = {"one": {}, "many": {"pool": 16}, "taken": {"pool": 16, "payloads": True}}[key_id]
        assert {name: body[name] for name in ("pool", "payloads") if name in body} == said
