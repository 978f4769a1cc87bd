"""A tiny model with random weights, prompts for it, and a key that reports are signed with."""

from pathlib import Path

import pytest
import torch

from tests.harness.command_line import invoke
from tests.harness.random_model import save_random_model, small_llama


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("tiny-model")
    save_random_model(folder, small_llama(max_position_embeddings=1024))
    return folder


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "the quick brown"}\n{"prompt": "a lazy dog"}\n')
    return path


@pytest.fixture
def signing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, the current one, with a key that reports are signed with, and its public part."""
    monkeypatch.chdir(tmp_path)
    assert invoke("case", "new-key", "case.pem").exit_code == 0
    (tmp_path / "public.pem").write_text(invoke("case", "public-key", "case.pem").output)
    return tmp_path
