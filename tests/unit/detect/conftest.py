"""A detection service in process: a real key ring over SQLite, a byte-level tokenizer, two tenants."""

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from detect_service.api.app import create_detection_app
from detect_service.backend import DetectionBackend
from detect_service.tokenizers import TokenizerSet
from shared.http.auth import Authenticate
from shared.http.health import Readiness
from shared.http.limits import HttpLimits
from shared.keys import KeyCache, KeyEncryptionKey, KeyRing, Scope, TokenRegistry, UnlockedKey, open_store
from shared.schemas.detection import DetectionResult
from shared.schemas.profile import Profile
from shared.tokenization import TextTokenizer
from shared.watermark import ContextTracker, Watermark, key_lanes

SEED = 1
LETTERS = [ord(letter) for letter in "abcdefghijklmnopqrstuvwxyz .,"]


def byte_tokenizer() -> TextTokenizer:
    """One token per byte, so that text and tokens map one to one."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={symbol: i for i, symbol in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return TextTokenizer(tokenizer)


def watermarked_text(tokenizer: TextTokenizer, watermark: Watermark, prf_key: bytes, tokens: int) -> str:
    """A text whose blocks are drawn from a watermarked uniform distribution over letter pairs."""
    generator = np.random.default_rng(7)
    letters = [tokenizer.encode(chr(letter))[0] for letter in LETTERS]
    written: list[int] = []
    tracker = ContextTracker(watermark.block_size, watermark.context_width)
    while len(written) < tokens:
        blocks = generator.choice(letters, size=(64, watermark.block_size))
        probabilities = np.full(64, 1 / 64)
        context = tracker.next_context(written)
        if context is not None:
            probabilities = watermark.reweight(
                key_lanes(prf_key)[None, :],
                np.array([context], dtype=np.int64),
                blocks.astype(np.int64),
                probabilities,
                np.array([0, 64]),
            )
        written += blocks[generator.choice(64, p=probabilities)].tolist()
    return tokenizer.decode(written)


@dataclass(frozen=True)
class Service:
    """The app's client, tokens by scope, and the keys it knows."""

    client: httpx.AsyncClient
    backend: DetectionBackend
    authenticate: Authenticate
    tokenizer: TextTokenizer
    keys: dict[str, UnlockedKey]
    tokens: dict[str, str]

    def headers(self, token: str = "full") -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[token]}"}

    async def post(self, path: str, body: dict[str, object], token: str = "full") -> httpx.Response:
        return await self.client.post(path, json=body, headers=self.headers(token))

    async def direct(self, body: dict[str, object], token: str = "full") -> httpx.Response:
        return await self.post("/v1/detect/direct", body, token)

    async def results(self, mode: str, body: dict[str, object], token: str = "full") -> list[DetectionResult]:
        response = await self.post(f"/v1/detect/{mode}", body, token)
        assert response.status_code == 200, response.text
        return [DetectionResult.model_validate(result) for result in response.json()["results"]]

    def marked(self, key_id: str, tokens: int = 200) -> str:
        key = self.keys[key_id]
        assert key.primary is not None
        return watermarked_text(self.tokenizer, key.profile.watermark(), key.primary.prf_key, tokens)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    tokenizer = byte_tokenizer()
    kek = KeyEncryptionKey(bytes(32))
    store = open_store(f"sqlite:///{tmp_path / 'keys.db'}")
    ring, registry = KeyRing(store, kek), TokenRegistry(store, kek)
    mine = Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": tokenizer.fingerprint})
    foreign = Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": "f" * 64})
    with pytest.MonkeyPatch.context() as patch:
        # The same secrets in every run: at a false positive rate of 1 % one run in a hundred would fail.
        patch.setattr("shared.keys.key_codec.os.urandom", random.Random(SEED).randbytes)
        for key_id, tenant, profile in (
            ("a-one", "a", mine),
            ("a-two", "a", mine),
            ("a-foreign", "a", foreign),
            ("b-one", "b", mine),
            ("c-foreign", "c", foreign),
        ):
            await ring.create(key_id, tenant=tenant, profile=profile)
    scopes = {
        "full": {Scope.DETECT, Scope.DETECT_EVIDENCE},
        "verdict": {Scope.DETECT},
        "none": {Scope.GENERATE},
    }
    tokens = {
        name: (await registry.create(tenant="a", scopes=granted))[0] for name, granted in scopes.items()
    }
    for tenant in ("c", "empty"):
        tokens[tenant] = (await registry.create(tenant=tenant, scopes={Scope.DETECT}))[0]
    cache = KeyCache(ring)
    await cache.start()
    backend = DetectionBackend(cache, TokenizerSet([tokenizer]), max_document_tokens=5_000)
    app = create_detection_app(
        backend,
        authenticate=registry.authenticate,
        limits=HttpLimits(),
        readiness=lambda: Readiness({"keys": cache.ready}),
    )
    keys = {key_id: await ring.open(key_id) for key_id in ("a-one", "a-two", "b-one")}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://detect") as client:
        yield Service(client, backend, registry.authenticate, tokenizer, keys, tokens)
    await cache.stop()
    await store.close()
