"""The generation service on loopback, over a fake engine and over the real one with a tiny random model."""

import logging
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import structlog
import uvicorn
from fastapi import FastAPI
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from tests.contract.openai.fake_generator import CONTEXT_LENGTH, MODEL, FakeGenerator, byte_tokenizer
from ttmark.gen_service.api import (
    ChatTemplate,
    GenerationBackend,
    RequestLimits,
    ServedModel,
    create_generation_app,
)
from ttmark.gen_service.engine import (
    Engine,
    EngineSettings,
)
from ttmark.services.chat_template import read_chat_template
from ttmark.services.engines import VLLM_ENVIRONMENT
from ttmark.shared.access.scopes import Principal, Scope, TokenUse
from ttmark.shared.http import AppOptions, HttpLimits
from ttmark.shared.keys.records import KeyState
from ttmark.shared.keys.unlocked import UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.audit import AuditEvent
from ttmark.shared.vault.key_store_errors import InvalidToken

_VLLM_SPARE = 4  # tokens that no request on vLLM may reach
TEMPLATE = (
    "{% for message in messages %}"
    "{% if loop.index0 and message.role == 'system' %}{{ raise_exception('system comes first') }}{% endif %}"
    "<{{ message.role }}>{{ message.content }}\n"
    "{% endfor %}<assistant>"
)
# The services speak plain HTTP, and to read the certificates of the world takes longer than a small test.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
PRINCIPALS = {
    "author": Principal("tok-author", "acme", frozenset({Scope.GENERATE})),
    "operator": Principal("tok-operator", "acme", frozenset({Scope.GENERATE, Scope.GENERATE_UNWATERMARKED})),
    "chooser": Principal("tok-chooser", "acme", frozenset({Scope.GENERATE, Scope.GENERATE_BIAS})),
    "messenger": Principal("tok-messenger", "acme", frozenset({Scope.GENERATE, Scope.GENERATE_PAYLOAD})),
    "anything": Principal("tok-anything", "acme", frozenset(Scope)),
    "auditor": Principal(
        "tok-auditor",
        "acme",
        frozenset({Scope.GENERATE, Scope.GENERATE_UNWATERMARKED, Scope.DETECT_EVIDENCE}),
    ),
    "detector": Principal("tok-detector", "acme", frozenset({Scope.DETECT, Scope.DETECT_EVIDENCE})),
    "machine": Principal(
        "tok-machine", "acme", frozenset({Scope.GENERATE}), uses=frozenset({TokenUse.MACHINE})
    ),
    "editor": Principal("tok-editor", "acme", frozenset({Scope.GENERATE}), uses=frozenset({TokenUse.CODE})),
    "keyless": Principal("tok-keyless", "initech", frozenset({Scope.GENERATE})),
    "undecided": Principal("tok-undecided", "umbrella", frozenset({Scope.GENERATE})),
}


@dataclass
class Keys:
    """Keys of several tenants, as a cache holds them."""

    keys: dict[str, UnlockedKey]
    ready: bool = True

    def get(self, key_id: str) -> UnlockedKey | None:
        return self.keys.get(key_id)

    def for_tenant(self, tenant: str) -> list[UnlockedKey]:
        return [key for key in self.keys.values() if key.tenant == tenant]


def _keys(fingerprint: str) -> Keys:
    def key(
        key_id: str, tenant: str, state: KeyState = KeyState.PRIMARY, tokenizer: str = fingerprint
    ) -> None:
        profile = Profile(scheme="synthid", block_size=2, tokenizer_fingerprint=tokenizer)
        version = UnlockedVersion(3, state, key_id.encode().ljust(16)[:16])
        keys[key_id] = UnlockedKey(key_id, tenant, profile, 1, (version,))

    keys: dict[str, UnlockedKey] = {}
    key("acme-main", "acme")
    key("acme-spare", "acme")
    key("acme-disabled", "acme", KeyState.DISABLED)
    key("acme-other", "acme", tokenizer="0" * 64)
    key("globex-main", "globex")
    key("umbrella-1", "umbrella")
    key("umbrella-2", "umbrella")
    return Keys(keys)


async def authenticate(token: str) -> Principal:
    if token not in PRINCIPALS:
        raise InvalidToken("unknown")
    return PRINCIPALS[token]


@dataclass
class Service:
    """A generation service and what a test may look at behind its back."""

    generator: Any
    app: FastAPI
    keys: Keys
    registry: CollectorRegistry
    audit: list[AuditEvent]
    url: str = ""
    clients: list[Any] = field(default_factory=list)

    @property
    def running(self) -> int:
        """Completions that are being generated."""
        if isinstance(self.generator, FakeGenerator):
            return self.generator.running
        return int(self.generator.running)

    def tokens(self, text: str) -> int:
        """The length of a text to the model."""
        return len(self.generator.tokenizer.encode(text))

    def http(self, token: str = "author") -> httpx.Client:
        """A plain HTTP client."""
        return self._kept(
            httpx.Client(
                base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=30, verify=NO_TLS
            )
        )

    def client(self, token: str = "author") -> openai.OpenAI:
        """The official client, without retries."""
        own = openai.DefaultHttpxClient(verify=NO_TLS)
        return self._kept(
            openai.OpenAI(base_url=self.url + "/v1", api_key=token, max_retries=0, http_client=own)
        )

    def async_client(self, token: str = "author") -> openai.AsyncOpenAI:
        """The official asynchronous client; to be closed by the test."""
        return openai.AsyncOpenAI(base_url=self.url + "/v1", api_key=token, max_retries=0)

    def _kept(self, client: Any) -> Any:
        self.clients.append(client)
        return client


def build_service(
    generator: Any,
    *,
    tracer_provider: Any = None,
    template: ChatTemplate | None = None,
    allowance: Any = None,
    throttle: Any = None,
    **given: Any,
) -> Service:
    """A service over a generator, not listening yet; `given` are rules of the backend, and limits."""
    rules = {name: given.pop(name) for name in ("labels", "manifests", "policy") if name in given}
    registry = CollectorRegistry()
    audit: list[AuditEvent] = []
    keys = _keys(generator.tokenizer.fingerprint)
    backend = GenerationBackend(
        {
            MODEL: ServedModel(generator, ChatTemplate(TEMPLATE)),
            "own-template": ServedModel(generator, template),
            "untold": ServedModel(generator),
        },
        keys,
        default_keys=["acme-main"],
        limits=RequestLimits(max_completions=8, **given),
        **rules,
    )
    app = create_generation_app(
        backend,
        AppOptions(
            authenticate=authenticate,
            limits=HttpLimits(max_body_bytes=100_000),
            registry=registry,
            tracer_provider=tracer_provider,
            audit=audit.append,
        ),
        allowance,
        throttle,
    )
    return Service(generator, app, keys, registry, audit)


@pytest.fixture(scope="session", autouse=True)
def _quiet_logs() -> Iterator[None]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", default="embedded", choices=("embedded", "vllm"), help="The real engine.")


def _over_vllm(config: pytest.Config) -> bool:
    return bool(config.getoption("--engine", "embedded") == "vllm")


def _reaches_an_engine(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    if callspec is not None and "service" in callspec.params:
        return bool(callspec.params["service"] != "fake")
    return bool({"engine", "smollm2_engine"} & set(getattr(item, "fixturenames", ())))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Over vLLM: what does not reach an engine is the same with every engine, and left out."""
    if not _over_vllm(config):
        return
    here = Path(__file__).parent
    left_out = [item for item in items if here in item.path.parents and not _reaches_an_engine(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """How much of the contract holds over vLLM."""
    if not _over_vllm(config):
        return
    count = {
        outcome: sum("contract/openai/" in report.nodeid for report in terminalreporter.getreports(outcome))
        for outcome in ("passed", "skipped", "failed", "error")
    }
    said = ", ".join(f"{number} {outcome}" for outcome, number in count.items())
    terminalreporter.write_line(f"Contract suite over vLLM, tests that reach an engine: {said}")


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Any]:
    """The real engine, embedded or vLLM's, over a tiny model with random weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("tiny-model")
    byte_tokenizer().backend.save(str(Path(folder) / "tokenizer.json"))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    vllm = _over_vllm(pytestconfig)
    config = LlamaConfig(
        vocab_size=257,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32 if vllm else None,  # vLLM's kernels take no smaller one
        max_position_embeddings=CONTEXT_LENGTH + (_VLLM_SPARE if vllm else 0),
        bos_token_id=None,
        eos_token_id=256,
        pad_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    running = _load_vllm(folder, max_branches=512) if vllm else _load_embedded(folder)
    running.start()
    yield running
    running.stop(0)


def _load_embedded(folder: Path) -> Any:
    return Engine.load(str(folder), EngineSettings(model_id=MODEL, threads=1, device="cpu"))


def _load_vllm(folder: Path, **more: Any) -> Any:
    for name, value in (VLLM_ENVIRONMENT | {"VLLM_CPU_KVCACHE_SPACE": "1"}).items():
        os.environ.setdefault(name, value)
    from ttmark.gen_service.vllm_engine.engine import VllmEngine
    from ttmark.gen_service.vllm_engine.settings import VllmSettings

    context = CONTEXT_LENGTH + _VLLM_SPARE
    arguments = {"block_size": 32, "num_gpu_blocks_override": 400, "max_model_len": context}
    settings = VllmSettings(model_id=MODEL, dtype="float32", arguments=arguments, **more)
    return VllmEngine.load(str(folder), settings)


@pytest.fixture(scope="session")
def smollm2_engine(smollm2_folder: Path, pytestconfig: pytest.Config) -> Iterator[Any]:
    """The real engine over a real language model, with the context of the tiny one."""
    if _over_vllm(pytestconfig):
        engine = _load_vllm(smollm2_folder, max_sequences=8)
    else:
        settings = EngineSettings(
            model_id=MODEL, threads=1, device="cpu", context_length=CONTEXT_LENGTH, max_branches=8
        )
        engine = Engine.load(str(smollm2_folder), settings)
    engine.start()
    yield engine
    engine.stop(0)


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[[Service], Service]]:
    """Makes a service listen on loopback until the session ends."""
    servers: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(service: Service) -> Service:
        listener = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(
            uvicorn.Config(service.app, log_config=None, access_log=False, ws="none", lifespan="off")
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        servers.append((server, thread))
        service.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        return service

    yield start
    for server, thread in servers:
        server.should_exit = True
        thread.join(timeout=10)


@pytest.fixture(scope="session")
def build() -> Callable[..., Service]:
    """`build_service`, for tests that bring a generator of their own."""
    return build_service


@pytest.fixture(scope="session")
def exporter() -> InMemorySpanExporter:
    """What a collector would have got from the traced service."""
    return InMemorySpanExporter()


@pytest.fixture(scope="session")
def traced(serve: Callable[[Service], Service], exporter: InMemorySpanExporter) -> Service:
    """A service with tracing on, over a fake."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return serve(build_service(FakeGenerator(), tracer_provider=provider))


@pytest.fixture(scope="session")
def fake_service(serve: Callable[[Service], Service]) -> Service:
    return serve(build_service(FakeGenerator(), keep_alive_seconds=0.3))


@pytest.fixture(scope="session")
def engine_service(serve: Callable[[Service], Service], engine: Engine) -> Service:
    return serve(build_service(engine))


@pytest.fixture(scope="session")
def smollm2_service(
    serve: Callable[[Service], Service], smollm2_engine: Engine, smollm2_folder: Path
) -> Service:
    return serve(build_service(smollm2_engine, template=read_chat_template(smollm2_folder)))


def _clean(service: Service) -> Iterator[Service]:
    if isinstance(service.generator, FakeGenerator):
        service.generator.reset()
    service.keys.ready = True
    service.audit.clear()
    yield service
    while service.clients:
        service.clients.pop().close()


@pytest.fixture(params=["fake", "engine", pytest.param("smollm2", marks=pytest.mark.slow)])
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    """The same contract holds for all; `test_real_model.py` has the small tier of the last."""
    yield from _clean(request.getfixturevalue(f"{request.param}_service"))


@pytest.fixture
def fake(fake_service: Service) -> Iterator[Service]:
    """For what only a fake does on demand."""
    yield from _clean(fake_service)


@pytest.fixture
def real(engine_service: Service) -> Iterator[Service]:
    """For what only an engine does: it marks its text."""
    yield from _clean(engine_service)
