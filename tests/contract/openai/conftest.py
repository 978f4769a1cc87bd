"""The generation service on loopback, over a fake engine and over the real one with a tiny random model."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import structlog
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.contract.openai.composed import Service, build_service
from tests.contract.openai.fake_generator import CONTEXT_LENGTH, MODEL, FakeGenerator, byte_tokenizer
from tests.harness.listening import listening
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.services.model_folder import read_chat_template

__all__ = [
    "_quiet_logs", "_services_as_new", "engine", "exporter", "fake", "real", "serve", "served", "service",
    "smollm2", "smollm2_engine", "traced",
]  # fmt: skip

_VLLM_SPARE = 4  # tokens that no request on vLLM may reach


@pytest.fixture(scope="module", autouse=True)
def _quiet_logs() -> Iterator[None]:
    """No longer than these tests: others look at what is logged."""
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
    left_out = [item for item in items if "openai" in item.path.parts and not _reaches_an_engine(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """How much of the contract holds over vLLM."""
    if not _over_vllm(config):
        return
    count = {
        outcome: sum("/openai/" in report.nodeid for report in terminalreporter.getreports(outcome))
        for outcome in ("passed", "skipped", "failed", "error")
    }
    said = ", ".join(f"{number} {outcome}" for outcome, number in count.items())
    terminalreporter.write_line(f"Contract suite over vLLM, tests that reach an engine: {said}")


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Any]:
    """The real engine, embedded or vLLM's, over a tiny model with random weights."""
    running = _tiny_engine(tmp_path_factory.getbasetemp(), _over_vllm(pytestconfig))
    yield running
    running.stop(0)


@cache
def _tiny_engine(base: Path, vllm: bool) -> Any:
    """One for all tests of a process, in whatever folder they stand: a folder has fixtures of its own."""
    import torch
    from transformers import LlamaForCausalLM

    from tests.harness.random_model import small_llama

    folder = base / "tiny-model"
    folder.mkdir()
    byte_tokenizer().backend.save(str(folder / "tokenizer.json"))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = small_llama(
        vocab_size=257,
        eos_token_id=256,
        head_dim=32 if vllm else None,  # vLLM's kernels take no smaller one
        max_position_embeddings=CONTEXT_LENGTH + (_VLLM_SPARE if vllm else 0),
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():  # the likeliest tokens are whole characters, so that a text with top-k reads back
        model.lm_head.weight[
            [token for token in range(256) if "\ufffd" in byte_tokenizer().decode([token])]
        ] = 0.0
    model.save_pretrained(folder)
    running = _load_vllm(folder, max_branches=512) if vllm else _load_embedded(folder)
    running.start()
    return running


def _load_embedded(folder: Path) -> Any:
    return Engine.load(str(folder), EngineSettings(model_id=MODEL, threads=1, device="cpu"))


def _load_vllm(folder: Path, **more: Any) -> Any:
    from ttmark.gen_service.features.vllm.service import VLLM_ENVIRONMENT

    for name, value in (VLLM_ENVIRONMENT | {"VLLM_CPU_KVCACHE_SPACE": "1"}).items():
        os.environ.setdefault(name, value)
    from ttmark.gen_service.features.vllm.vllm_engine import VllmEngine
    from ttmark.gen_service.features.vllm.vllm_settings import VllmSettings

    context = CONTEXT_LENGTH + _VLLM_SPARE
    arguments = {"block_size": 32, "num_gpu_blocks_override": 400, "max_model_len": context}
    settings = VllmSettings(model_id=MODEL, dtype="float32", arguments=arguments, **more)
    return VllmEngine.load(str(folder), settings)


@pytest.fixture(scope="session")
def smollm2_engine(smollm2_folder: Path, pytestconfig: pytest.Config) -> Iterator[Any]:
    """The real engine over a real language model, with the context of the tiny one."""
    running = _smollm2_engine(smollm2_folder, _over_vllm(pytestconfig))
    yield running
    running.stop(0)


@cache
def _smollm2_engine(folder: Path, vllm: bool) -> Any:
    if vllm:
        engine = _load_vllm(folder, max_sequences=8)
    else:
        settings = EngineSettings(
            model_id=MODEL, threads=1, device="cpu", context_length=CONTEXT_LENGTH, max_branches=8
        )
        engine = Engine.load(str(folder), settings)
    engine.start()
    return engine


@pytest.fixture(scope="session")
def served() -> list[Service]:
    return []


@pytest.fixture(scope="session")
def serve(served: list[Service]) -> Iterator[Callable[[Service], Service]]:
    """Makes a service listen on loopback until the session ends."""
    with ExitStack() as ends:

        def start(service: Service) -> Service:
            service.url = f"http://127.0.0.1:{ends.enter_context(listening(service.app))}"
            served.append(service)
            return service

        yield start


@pytest.fixture(autouse=True)
def _services_as_new(served: list[Service]) -> Iterator[None]:
    """Before a test, and after it, when its clients are closed: other tests take the same services."""
    for service in served:
        service.reset()
    yield
    for service in served:
        service.reset()


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
def fake(serve: Callable[[Service], Service]) -> Service:
    """For what only a fake does on demand."""
    return serve(build_service(FakeGenerator(), keep_alive_seconds=0.3))


@pytest.fixture(scope="session")
def real(serve: Callable[[Service], Service], engine: Engine) -> Service:
    """For what only an engine does: it marks its text."""
    return serve(build_service(engine))


@pytest.fixture(scope="session")
def smollm2(serve, smollm2_engine, smollm2_folder) -> Service:
    return serve(build_service(smollm2_engine, template=read_chat_template(smollm2_folder)))


@pytest.fixture(params=["fake", "real", pytest.param("smollm2", marks=pytest.mark.slow)])
def service(request: pytest.FixtureRequest) -> Any:
    """The same contract holds for all; `test_real_model.py` has the small tier of the last."""
    return request.getfixturevalue(request.param)
