"""The service with keys of other systems beside its own."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.detect_service.conftest import LETTERS, Service
from tests.unit.detect_service.simulated_texts import written_by_vllm
from ttmark.services.settings.store import open_store
from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.foreign_profile import ForeignProfile
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.watermark.foreign.schemes import FOREIGN_SCHEMES

KEY = 0xFEEDFACECAFEBEEF


GIVEN: dict[str, dict[str, Any]] = {
    "vllm-gumbel": {"key": KEY},
    "vllm-dual-gumbel": {"key": 7, "alpha": 0.3},
    "sglang-gumbel": {"key": "0xbeef"},
    "kgw": {"vocab_size": 300},
    "synthid-text": {"keys": list(range(30)), "ngram_len": 5},
}


def vllm_text(tokenizer: TextTokenizer, tokens: int) -> str:
    return written_by_vllm(tokenizer, KEY, [tokenizer.encode(chr(one))[0] for one in LETTERS], tokens)


class Foreign:
    """The service, with keys of other systems imported into its store."""

    def __init__(self, service: Service, ring: KeyRing) -> None:
        self.service = service
        self.ring = ring

    async def add(self, key_id: str, scheme: str, tokenizer: str | None = None) -> None:
        parameters, secrets = FOREIGN_SCHEMES[scheme].split(GIVEN[scheme])
        fingerprint = tokenizer or self.service.tokenizer.fingerprint
        profile = ForeignProfile(scheme=scheme, parameters=parameters, tokenizer_fingerprint=fingerprint)
        await self.ring.create(key_id, tenant="a", profile=profile, secrets=secrets)
        await self.refresh()

    async def refresh(self) -> None:
        assert isinstance(self.service.backend.keys, KeyCache)
        await self.service.backend.keys.refresh()

    async def ask(self, mode: str, text: str, keys: Sequence[str], token: str = "full", **body: Any) -> Any:
        asked = {"inputs": [{"text": text}], "keys": list(keys), **body}
        path = "/v1/detect" if mode == "combined" else f"/v1/detect/{mode}"
        response = await self.service.post(path, asked, token)
        assert response.status_code == 200, response.text
        return response.json()["results"][0]


@pytest.fixture
async def foreign(service: Service, tmp_path: Path) -> AsyncIterator[Foreign]:
    store = open_store(f"sqlite:///{tmp_path / 'keys.db'}")
    added = Foreign(service, KeyRing(store, KeyEncryptionKey(bytes(32))))
    await added.add("partner", "vllm-gumbel")
    yield added
    await store.close()
