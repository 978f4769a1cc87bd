"""A tiny random model on disk, loaded once, and engines over it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from tests.harness.random_model import save_random_model, small_llama
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.settings import EngineSettings

CONFIG = small_llama(hidden_size=48, intermediate_size=96, initializer_range=0.3)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny-llama"
    save_random_model(folder, CONFIG)
    return folder


@pytest.fixture(scope="session")
def engine(tiny_model: Path) -> Iterator[Engine]:
    """A running engine with default settings, for tests that leave it as they found it."""
    running = Engine.load(str(tiny_model), EngineSettings())
    running.start()
    yield running
    running.stop(0)


@pytest.fixture
def start_engine(tiny_model: Path) -> Iterator[Callable[..., Engine]]:
    """Starts an engine with the given settings; all are stopped at the end of the test."""
    started: list[Engine] = []

    def start(folder: Path = tiny_model, **settings: object) -> Engine:
        engine = Engine.load(str(folder), EngineSettings(**settings))  # type: ignore[arg-type]
        engine.start()
        started.append(engine)
        return engine

    yield start
    for engine in started:
        engine.stop(0)
