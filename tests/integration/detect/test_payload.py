"""A payload from the request to the reading: both services, the demo model, a key store with real tokens."""

import json
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from ttmark.detect_service.api.app import create_detection_app
from ttmark.detect_service.backend import DetectionBackend, TokenizerSet
from ttmark.detect_service.extraction import ExtractionLimits, ExtractionWorkers
from ttmark.gen_service.api import GenerationBackend, RequestLimits, ServedModel, create_generation_app
from ttmark.gen_service.demo_model import PROMPTS_PATH
from ttmark.gen_service.engine import Engine
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.health import Readiness
from ttmark.shared.keys.cache import KeyCache
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.store import open_store

POOL = 256
PROMPTS = [json.loads(line)["prompt"] for line in PROMPTS_PATH.read_text().splitlines()]
SCOPES = {
    "plain": {Scope.GENERATE},
    "sender": {Scope.GENERATE, Scope.GENERATE_PAYLOAD},
    "reader": {Scope.DETECT, Scope.DETECT_EVIDENCE},
    "verdict": {Scope.DETECT},
}


@dataclass(frozen=True)
class Services:
    """Both services over one key store, and a token for each set of scopes."""

    clients: dict[str, httpx.AsyncClient]
    tokens: dict[str, str]
    ring: KeyRing
    cache: KeyCache

    async def post(self, token: str, path: str, body: dict[str, Any]) -> httpx.Response:
        client = self.clients["detect" if "detect" in path else "generate"]
        headers = {"Authorization": f"Bearer {self.tokens[token]}"}
        return await client.post(path, json=body, headers=headers, timeout=600)

    async def texts(self, payload: int | None, prompts: list[str], **more: Any) -> list[str]:
        """One completion of each prompt, prompt not included."""
        watermark = {} if payload is None else {"payload": payload}
        body = {"model": "demo", "prompt": prompts, "max_tokens": 120, "ignore_eos": True, "top_k": 50}
        response = await self.post("sender", "/v1/completions", {**body, "watermark": watermark, **more})
        assert response.status_code == 200, response.text
        return [choice["text"] for choice in response.json()["choices"]]

    async def found(self, mode: str, texts: list[str], token: str = "reader") -> list[dict[str, Any]]:
        body = {"inputs": [{"text": text} for text in texts]}
        response = await self.post(token, f"/v1/detect/{mode}", body)
        assert response.status_code == 200, response.text
        results: list[dict[str, Any]] = response.json()["results"]
        return results


@pytest.fixture
async def services(engine: Engine, tmp_path: Path) -> AsyncIterator[Services]:
    kek = KeyEncryptionKey(bytes(32))
    store = open_store(f"sqlite:///{tmp_path / 'keys.db'}")
    ring, registry = KeyRing(store, kek), TokenRegistry(store, kek)
    for key_id, payloads in (("messages", True), ("main", False)):
        profile = Profile(
            scheme="synthid",
            tokenizer_fingerprint=engine.tokenizer.fingerprint,
            pool=POOL if payloads else 16,
            payloads=payloads,
        )
        with pytest.MonkeyPatch.context() as patch:
            # The same secrets in every run: how much evidence a text has is chance over secrets.
            patch.setattr("ttmark.shared.keys.key_codec.os.urandom", random.Random(key_id).randbytes)
            await ring.create(key_id, tenant="acme", profile=profile)
    tokens = {name: (await registry.create(tenant="acme", scopes=own))[0] for name, own in SCOPES.items()}
    cache = KeyCache(ring)
    await cache.start()
    workers = ExtractionWorkers(ExtractionLimits(workers=1))
    options = AppOptions(authenticate=registry.authenticate)
    generation = create_generation_app(
        GenerationBackend({"demo": ServedModel(engine)}, cache, limits=RequestLimits(max_completions=16)),
        options,
    )
    detection = create_detection_app(
        DetectionBackend(cache, TokenizerSet([engine.tokenizer]), max_document_tokens=5_000),
        AppOptions(authenticate=registry.authenticate),
        readiness=lambda: Readiness({}),
        workers=workers,
    )
    apps = {"generate": generation, "detect": detection}
    clients = {
        name: httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://local")
        for name, app in apps.items()
    }
    yield Services(clients, tokens, ring, cache)
    for client in clients.values():
        await client.aclose()
    await workers.close()
    await cache.stop()
    await store.close()


async def test_the_payload_of_a_request_is_read_from_its_text_in_every_mode(services: Services) -> None:
    sent = [0, 77, POOL - 1]
    texts = [(await services.texts(payload, PROMPTS[:1], seed=4))[0] for payload in sent]
    for mode in ("direct", "aligned", "localized"):
        results = await services.found(mode, texts)
        assert [result["key"]["key_id"] for result in results] == ["messages"] * 3
        assert [result["key"]["payload"] for result in results] == sent
        assert [result["pool_keys_found"] for result in results] == [1] * 3


async def test_texts_before_and_after_a_rotation_give_their_payload_and_others_give_none(services):
    (before,) = await services.texts(200, PROMPTS[:1], seed=1)
    await services.ring.rotate("messages")
    await services.ring.promote("messages", 2, force=True)
    await services.cache.refresh()
    (after,) = await services.texts(200, PROMPTS[1:2], seed=1)
    (drawn,) = await services.texts(None, PROMPTS[2:3], seed=1)
    results = await services.found("direct", [before, after, drawn])
    named = [
        (result["key"]["key_id"], result["key"]["version"], result["key"]["payload"]) for result in results
    ]
    assert named == [("messages", 1, 200), ("messages", 2, 200), ("main", 1, None)]


async def test_a_conversation_that_goes_on_gives_the_payload_of_each_part(services: Services) -> None:
    (first,) = await services.texts(3, PROMPTS[:1], seed=2)
    (second,) = await services.texts(90, [PROMPTS[0] + first], seed=2)
    (result,) = await services.found("localized", [first + second])
    assert (result["key"]["payload"], result["pool_keys_found"]) == (None, 2)
    # Of passages that overlap the better one is named: one may reach into the other and hide it.
    assert [segment["key"]["payload"] for segment in result["segments"]] in ([3, 90], [3], [90])


async def test_without_the_scopes_a_payload_is_neither_set_nor_read(services: Services) -> None:
    body = {"model": "demo", "prompt": "Once", "watermark": {"payload": 3}}
    assert (await services.post("plain", "/v1/completions", body)).status_code == 403
    (text,) = await services.texts(3, PROMPTS[:1], seed=4)
    (result,) = await services.found("direct", [text], "verdict")
    assert (result["verdict"], result["key"]) == ("watermarked", None)
