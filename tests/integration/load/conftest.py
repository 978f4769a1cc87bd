"""Generation services as real processes behind real HTTP, over a tiny random model or the demo model."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness.observe.forked_services import ForkedService
from tests.harness.random_model import save_random_model, small_llama
from ttmark.services.local.provision import LocalSetup, provision

StartService = Callable[..., ForkedService]


@pytest.fixture(scope="session")
def tiny_setup(tmp_path_factory: pytest.TempPathFactory) -> LocalSetup:
    """A random model of a few thousand parameters, with keys and a token for it."""
    folder = tmp_path_factory.mktemp("load") / "tiny"
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    save_random_model(folder, small_llama(**heads, max_position_embeddings=512))
    return provision(str(folder), None, folder.parent / "state")


@pytest.fixture(scope="session")
def demo_setup(tmp_path_factory: pytest.TempPathFactory) -> LocalSetup:
    """The demo model, with keys and a token for it."""
    return provision("demo", None, tmp_path_factory.mktemp("demo") / "state")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartService]:
    """Starts services; those that still run at the end of the test are stopped."""
    started: list[ForkedService] = []

    def start_one(setup: LocalSetup, **settings: object) -> ForkedService:
        variables = {f"TTMARK_{name.upper()}": str(value) for name, value in settings.items()}
        started.append(ForkedService(setup, tmp_path / f"gen-{len(started)}.log", variables))
        return started[-1]

    yield start_one
    for service in started:
        service.terminate()
    for service in started:
        service.wait()


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The services inherit it: a core for them, a core for who puts load on them."""
    monkeypatch.setitem(os.environ, "OMP_NUM_THREADS", "1")
