"""A detection service in process: a real key ring over SQLite, a byte-level tokenizer, two tenants."""

import asyncio
import random
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
import numpy as np
import pytest

from tests.harness.byte_tokenizers import bytes_alone
from tests.harness.certificates import Credential, credential
from tests.harness.detection_routes import route_of
from tests.unit.detect_service.served import of, served, workers_here
from ttmark.detect_service.documents.backend import DetectionBackend, TokenizerSet
from ttmark.detect_service.options import Mode
from ttmark.services.settings.store import open_store
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.http.auth import Authenticate
from ttmark.shared.keys.held_keys import UnlockedKey
from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.detection.detect import CombinedResult, DetectionResult
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.signed_files.signed_file import CaseKey
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.watermark.prf import key_lanes
from ttmark.shared.watermark.schemes.watermark import Watermark

SEED = 1
Spaces = Literal["few", "single", "double"]
HUMAN = "it was a cold clear day, and nobody had thought of bringing a second coat for the walk down. "
LETTERS = [ord(letter) for letter in "abcdefghijklmnopqrstuvwxyz .,"]


def byte_tokenizer() -> TextTokenizer:
    """One token per byte, so that text and tokens map one to one."""
    return TextTokenizer(bytes_alone())


def watermarked_text(
    tokenizer: TextTokenizer,
    watermark: Watermark,
    prf_key: bytes,
    tokens: int,
    *,
    spaces: Spaces = "few",
    seed: int = 7,
    choices: int = 64,
    ids: Sequence[int] = (),
) -> str:
    """A text whose blocks, of ids or letters, are drawn from a watermarked uniform distribution of `choices`.

    `spaces`: `few`: as many as of any letter; `single`: half of the pairs end in one, and no two meet;
    `double`: a quarter of the pairs are two.
    """
    generator = np.random.default_rng(seed)
    letters = ids or [tokenizer.encode(chr(letter))[0] for letter in LETTERS]
    written: list[int] = []
    tracker = watermark.tracker()
    while len(written) < tokens:
        blocks = generator.choice(letters, size=(choices, watermark.block_size))
        if spaces != "few":
            blocks[:] = generator.choice(letters[:26], size=(64, 2))
            blocks[: 32 if spaces == "single" else 16, 1] = letters[26]
        if spaces == "double":
            blocks[:16, 0] = letters[26]
        probabilities = np.full(choices, 1 / choices)
        context = tracker.next_context(written)
        if context is not None:
            probabilities = watermark.reweight(
                key_lanes(prf_key)[None, :],
                np.array([context], dtype=np.int64),
                blocks.astype(np.int64),
                probabilities,
                np.array([0, choices]),
            )
        written += blocks[generator.choice(choices, p=probabilities)].tolist()
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
    case_key: CaseKey
    authority: Credential

    def headers(self, token: str = "full") -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[token]}"}

    async def post(self, path: str, body: dict[str, object], token: str = "full") -> httpx.Response:
        return await self.client.post(path, json=body, headers=self.headers(token))

    async def send(
        self, path: str, name: str, content: bytes, token: str = "full", **fields: str
    ) -> httpx.Response:
        """A file with further fields, as a form."""
        form = {"file": (name, content), **{field: (None, value) for field, value in fields.items()}}
        return await self.client.post(path, files=form, headers=self.headers(token))

    async def direct(self, body: dict[str, object], token: str = "full") -> httpx.Response:
        return await self.post("/v1/detect/direct", body, token)

    async def results(self, mode: str, body: dict[str, object], token: str = "full") -> list[DetectionResult]:
        response = await self.post(route_of(mode), body, token)
        assert response.status_code == 200, response.text
        kind = CombinedResult if mode == "combined" else DetectionResult
        return [kind.model_validate(result) for result in response.json()["results"]]

    async def one(self, mode: str, text: str, token: str = "full", **fields: Any) -> Any:
        (result,) = await self.results(mode, {"inputs": [{"text": text}], **fields}, token)
        return result

    def marked(self, key_id: str, tokens: int = 200, *, number: int = 0, **how: Any) -> str:
        """Made with that number of the key's pool; `how` as in `watermarked_text`."""
        key = self.keys[key_id]
        prf_key = key.primary.prf_keys[number]
        asked = (prf_key, tokens, *sorted(how.items()))
        if asked not in _MARKED:
            _MARKED[asked] = watermarked_text(self.tokenizer, key.profile.watermark(), prf_key, tokens, **how)
        return _MARKED[asked]


_MARKED: dict[tuple[Any, ...], str] = {}
"""Texts that tests of this process have asked for, each of which takes as long as ten questions about it."""


async def _fill(url: str, tokenizer: TextTokenizer) -> dict[str, str]:
    """Keys of several tenants, and tokens by the names that tests use."""
    kek = KeyEncryptionKey(bytes(32))
    store = open_store(url)
    ring, registry = KeyRing(store, kek), TokenRegistry(store, kek)
    mine = Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": tokenizer.fingerprint})
    foreign = mine.model_copy(update={"tokenizer_fingerprint": "f" * 64})
    pooled = mine.model_copy(update={"pool": 16})
    payloads = pooled.model_copy(update={"payloads": True})
    with pytest.MonkeyPatch.context() as patch:
        # The same secrets in every run: at a false positive rate of 1 % one run in a hundred would fail.
        patch.setattr("ttmark.shared.keys.key_codec.os.urandom", random.Random(SEED).randbytes)
        for key_id, tenant, profile in (
            ("a-one", "a", mine),
            ("a-two", "a", mine),
            ("a-foreign", "a", foreign),
            ("b-one", "b", mine),
            ("c-foreign", "c", foreign),
            ("d-pool", "d", pooled),
            ("e-payload", "e", payloads),
            ("e-pool", "e", pooled),
        ):
            await ring.create(key_id, tenant=tenant, profile=profile)
    verdict, full = {Scope.DETECT}, {Scope.DETECT, Scope.DETECT_EVIDENCE}
    tokens = {}
    for name, tenant, scopes in (
        *(("full", "a", full), ("verdict", "a", verdict), ("none", "a", {Scope.GENERATE})),
        *(("pool", "d", full), ("payload", "e", full)),
        *((tenant, tenant, verdict) for tenant in ("c", "d", "e", "empty")),
    ):
        tokens[name], _ = await registry.create(tenant=tenant, scopes=scopes)
    await store.close()
    return tokens


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder with a key store, not to be written to, and the tokens that it knows."""
    folder = tmp_path_factory.mktemp("stored")
    return folder, asyncio.run(_fill(f"sqlite:///{folder / 'keys.db'}", byte_tokenizer()))


@pytest.fixture
async def service(stored: tuple[Path, dict[str, str]], tmp_path: Path) -> AsyncIterator[Service]:
    folder, tokens = stored[0], dict(stored[1])
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    tokenizer, kek = byte_tokenizer(), KeyEncryptionKey(bytes(32))
    store = open_store(f"sqlite:///{tmp_path / 'keys.db'}")
    ring, registry = KeyRing(store, kek), TokenRegistry(store, kek)
    cache = KeyCache(ring)
    await cache.start()
    backend = DetectionBackend(cache, TokenizerSet([tokenizer]), max_document_tokens=5_000)
    workers, authority = workers_here(), credential()
    case_key = CaseKey.generate()
    opened = ("a-one", "a-two", "b-one", "d-pool", "e-payload", "e-pool")
    keys = {key_id: await ring.open(key_id) for key_id in opened}
    if examiner := of("manifests", "ManifestExaminer", "manifest_examiner"):
        examiner = examiner(workers, authority.root.decode())
    async with served(
        backend, registry.authenticate, workers=workers, case_key=case_key, examiner=examiner
    ) as client:
        yield Service(client, backend, registry.authenticate, tokenizer, keys, tokens, case_key, authority)
    await cache.stop()
    await store.close()


@pytest.fixture
def answers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers leave when they are ready, for tests that ask hundreds of questions and look at no clock."""
    monkeypatch.setattr("ttmark.detect_service.answer_timing.rest_of_step", lambda *_: 0.0)
    monkeypatch.setattr("ttmark.detect_service.answer_timing._LATE_PART", 1e9)


@pytest.fixture
def tokenizer() -> TextTokenizer:
    return byte_tokenizer()


@pytest.fixture
def mode() -> Mode:
    """What is asked: the default question; `tests/features/paper` asks the same of the paper's detectors."""
    return "combined"


@pytest.fixture
def asked(mode: Mode) -> tuple[Mode, dict[str, Any]]:
    """The same with options."""
    return mode, {}
