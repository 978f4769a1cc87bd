"""Tenants of a detection service, and one that makes jobs."""

import time
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import httpx

from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.services.settings.store import open_store
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.vault.kek import KeyEncryptionKey

TENANTS = {tenant: {Scope.DETECT, Scope.DETECT_EVIDENCE} for tenant in ("dear", "small")}


async def provision(
    folder: Path, store_url: str = "", tenants: Mapping[str, Set[Scope]] = TENANTS, **profile: Any
) -> dict[str, str]:
    """A key and a token with some scopes for each tenant; without an address the store is in the folder."""
    kek = KeyEncryptionKey(bytes(32))
    (folder / "kek").write_text(bytes(32).hex())
    store = open_store(store_url or f"sqlite:///{folder / 'keys.db'}")
    fingerprint = TextTokenizer.load(DEMO_MODEL_PATH).fingerprint
    fields = {"scheme": "synthid", "tokenizer_fingerprint": fingerprint} | profile
    tokens = {}
    for tenant, scopes in tenants.items():
        await KeyRing(store, kek).create(tenant, tenant=tenant, profile=Profile.model_validate(fields))
        tokens[tenant], _ = await TokenRegistry(store, kek).create(tenant=tenant, scopes=scopes)
    await store.close()
    return tokens


class JobAsker:
    def __init__(self, client: httpx.Client, token: str) -> None:
        self._client = client
        self._headers = {"Authorization": f"Bearer {token}"}

    def make(self, mode: str, texts: list[str]) -> str:
        body = {"mode": mode, "inputs": [{"text": text} for text in texts]}
        for _ in range(9):  # a store on a busy machine does not always answer in its time
            response = self._client.post("/v1/detect/jobs", json=body, headers=self._headers)
            if response.status_code != 503:
                break
            time.sleep(float(response.headers["Retry-After"]))
        assert response.status_code == 202, response.text
        return str(response.json()["id"])

    def status(self, job: str) -> dict[str, int | str]:
        response = self._client.get(f"/v1/detect/jobs/{job}", headers=self._headers)
        status: dict[str, int | str] = response.json()
        return status

    def seconds(self, texts: list[str]) -> float:
        """From sending a job to its last answer; no document may fail."""
        began = time.perf_counter()
        job = self.make("combined", texts)
        while (now := self.status(job))["status"] != "finished":
            assert time.perf_counter() - began < 200, now
            time.sleep(0.05)
        assert now["failed"] == 0
        return time.perf_counter() - began
