"""Keys of other systems make no text."""

from typing import Any

from ttmark.shared.keys.held_keys import ForeignKey, ForeignVersion, KeyState
from ttmark.shared.schemas.foreign_profile import ForeignProfile
from ttmark.shared.watermark.foreign import VllmGumbel

REQUEST = {"top_k": 4, "ignore_eos": True}


def test_a_key_of_another_system_makes_no_text(fake: Any) -> None:
    fingerprint = fake.keys.keys["acme-main"].profile.tokenizer_fingerprint
    profile = ForeignProfile(
        scheme="vllm-gumbel", parameters={"context_width": 4}, tokenizer_fingerprint=fingerprint
    )
    for tenant, token in (("acme", "author"), ("initech", "keyless")):
        versions = (ForeignVersion(1, KeyState.ACTIVE, VllmGumbel(5)),)
        fake.keys.keys[tenant] = ForeignKey(tenant, tenant, profile, 1, versions)
        response = fake.post("completions", token, **REQUEST, watermark={"key_id": tenant})
        assert response.status_code == 400
        assert "another system's (vllm-gumbel)" in response.json()["error"]["message"]
        assert response.json()["error"]["param"] == "watermark.key_id"
    assert fake.block("completions", **REQUEST)["key_id"] == "acme-main"
    assert fake.post("completions", "keyless", **REQUEST).json()["error"]["code"] == "no_usable_key"
