"""Both services as they are composed for production, on loopback, with a tiny model and a real Redis."""

import asyncio
import hashlib
import io
import logging
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
import structlog
import uvicorn
from fastapi import FastAPI

from tests.contract.openai.fake_generator import byte_tokenizer
from tests.harness.waiting import eventually
from ttmark.services.composition import key_access
from ttmark.services.composition.detection_service import build_detection_service
from ttmark.services.composition.generation_service import build_generation_service
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.settings.store import open_store
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.keys.rotation_by_volume import VolumeCounter
from ttmark.shared.limits.rate_limits import Allowance
from ttmark.shared.observability.logging import configure_logging
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.stores.redis_client import RedisClient
from ttmark.shared.vault.stores.store import RecordStore

T = TypeVar("T")

KEK_TEXT = hashlib.sha256(b"the key-encryption key of these tests").hexdigest()
KEK = KeyEncryptionKey.from_text(KEK_TEXT)
MODEL = "tiny-model"
REFRESH_SECONDS = 0.3
STORE_SECONDS = 1.0  # that services wait for a store which is away


class HeldCache(KeyCache):
    """A cache that a test can keep from learning anything new, in the replicas whose reports it names."""

    held: set[str] = set()  # noqa: RUF012 - shared on purpose: replicas run in other threads

    async def refresh(self) -> None:
        """Waits while the replica is held."""
        while self._reporter is not None and self._reporter._replica_id in self.held:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await super().refresh()


class Replica:
    """One service that listens on loopback, in a thread of its own."""

    def __init__(self, name: str, app: FastAPI) -> None:
        self.name = name
        self.app = app
        self.client = httpx.Client(timeout=30)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        config = uvicorn.Config(app, log_config=None, access_log=False, ws="none", proxy_headers=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True
        )

    def start(self) -> "Replica":
        self._thread.start()
        eventually(lambda: self._server.started)
        return self

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=20)
        self.client.close()

    @property
    def ready(self) -> bool:
        return self.client.get(self.url + "/readyz").status_code == 200

    def metric(self, name: str) -> float:
        lines = self.client.get(self.url + "/metrics").text.splitlines()
        return next(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"{name} "))

    def ask(self, token: str, **body: Any) -> httpx.Response:
        """A small request that needs a key: eight tokens, or the detection of a short text."""
        if self.name.startswith("gen"):
            content = {"model": MODEL, "prompt": "a", "max_tokens": 8, **body}
            return self.request("POST", "/v1/completions", token, json=content)
        content = {"inputs": [{"text": "a short text"}], **body}
        return self.request("POST", "/v1/detect/direct", token, json=content)

    def request(self, method: str, path: str, token: str | None, **options: Any) -> httpx.Response:
        """Any request; without `token`, `headers` say who asks."""
        if token is not None:
            options["headers"] = {"Authorization": f"Bearer {token}"}
        return self.client.request(method, self.url + path, **options)


class Operator:
    """Who changes keys and tokens, over a connection of its own each time."""

    def __init__(self, store_url: str, fingerprint: str) -> None:
        self._store_url = store_url
        self._profile = Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": fingerprint})

    def on_store(self, work: Callable[[RecordStore], Coroutine[Any, Any, T]]) -> T:
        """The result of some work with the store."""

        async def run() -> T:
            store = open_store(self._store_url)
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(run())

    def do(self, work: Callable[[KeyRing, TokenRegistry], Coroutine[Any, Any, T]]) -> T:
        """The result of some work with keys and tokens."""
        return self.on_store(lambda store: work(KeyRing(store, KEK), TokenRegistry(store, KEK)))

    def key(self, key_id: str, tenant: str = "acme") -> None:
        self.do(lambda ring, _: ring.create(key_id, tenant=tenant, profile=self._profile))

    def token(self, *scopes: Scope, tenant: str = "acme", **options: Any) -> str:
        granted = scopes or tuple(Scope)
        return self.do(lambda _, registry: registry.create(tenant=tenant, scopes=granted, **options))[0]

    def revoke(self, token: str) -> None:
        self.do(lambda _, registry: registry.revoke(token.split("_")[1]))


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of random weights whose tokens are bytes."""
    from tests.harness.random_model import save_random_model, small_llama

    folder = tmp_path_factory.mktemp("model") / MODEL
    heads = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    size = {"vocab_size": 257, "eos_token_id": 256, "hidden_size": 16, "intermediate_size": 32}
    save_random_model(folder, small_llama(**heads, **size))
    byte_tokenizer().backend.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="session")
def fingerprint(tiny_model: Path) -> str:
    return TextTokenizer.load(tiny_model).fingerprint


class Cluster:
    """Replicas of both services over one store."""

    def __init__(self, store_url: str, model: Path, operator: Operator, patch: pytest.MonkeyPatch) -> None:
        self.operator = operator
        self.replicas: dict[str, Replica] = {}
        self.held = HeldCache.held
        self.log = io.StringIO()
        self._patch = patch
        self.environment = {
            "TTMARK_STORE_URL": store_url, "TTMARK_KEK": KEK_TEXT, "TTMARK_MODEL": str(model),
            "TTMARK_TOKENIZERS": str(model), "TTMARK_THREADS": "1", "TTMARK_DTYPE": "float32",
            "TTMARK_LOG_LEVEL": "DEBUG", "TTMARK_PUBLIC": "true",
            "TTMARK_CORS_ORIGINS": "https://app.example.org, http://localhost:5173",
        }  # fmt: skip
        patch.setattr(key_access, "KeyCache", HeldCache)
        patch.setattr(key_access, "KEY_REFRESH_SECONDS", REFRESH_SECONDS)
        patch.setitem(TokenRegistry.__init__.__kwdefaults__, "fresh_seconds", REFRESH_SECONDS)
        patch.setitem(RedisClient.__init__.__kwdefaults__, "budget_seconds", STORE_SECONDS)
        patch.setitem(VolumeCounter.__init__.__kwdefaults__, "every_seconds", REFRESH_SECONDS)
        # Counters begin anew each minute: a test that met the change would be granted a little more.
        patch.setitem(Allowance.__init__.__kwdefaults__, "now", lambda: 6_030.0)

    def start(self, name: str, settings: Mapping[str, str] | None = None) -> Replica:
        """Starts `gen-1`, `detect-2` and the like."""
        environment = self.environment | {"TTMARK_REPLICA_ID": name} | dict(settings or {})
        with pytest.MonkeyPatch.context() as patch:
            for variable, value in environment.items():
                patch.setenv(variable, value)
            if name.startswith("gen"):
                app = build_generation_service(GenerationSettings())
            else:
                app = build_detection_service(DetectionSettings())
        configure_logging("DEBUG", self.log)
        self.replicas[name] = Replica(name, app).start()
        return self.replicas[name]

    def of(self, service: str) -> list[Replica]:
        return [replica for name, replica in self.replicas.items() if name.startswith(service)]

    def stop(self, name: str) -> None:
        self.replicas.pop(name).stop()

    def close(self) -> None:
        HeldCache.held.clear()
        for name in list(self.replicas):
            self.stop(name)


@pytest.fixture(scope="session")
def kek() -> KeyEncryptionKey:
    return KEK


@pytest.fixture(scope="module")
def own_redis(start_redis: Callable[..., Any]) -> Any:
    """A server of this module's own, which its tests may break."""
    return start_redis()


@pytest.fixture(scope="module")
def cluster(own_redis: Any, tiny_model: Path, fingerprint: str) -> Iterator[Cluster]:
    """Two replicas of each service, keys of two tenants."""
    with pytest.MonkeyPatch.context() as patch:
        handlers, level = logging.getLogger().handlers, logging.getLogger().level
        operator = Operator(own_redis.url, fingerprint)
        operator.key("acme-main")
        operator.key("globex-main", tenant="globex")
        cluster = Cluster(own_redis.url, tiny_model, operator, patch)
        for name in ("gen-1", "gen-2", "detect-1", "detect-2"):
            cluster.start(name)
        for replica in cluster.replicas.values():
            eventually(lambda replica=replica: replica.ready)
        yield cluster
        cluster.close()
        logging.getLogger().handlers = handlers
        logging.getLogger().setLevel(level)
        structlog.reset_defaults()
