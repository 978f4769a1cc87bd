"""A tiny model with random weights, prompts and documents for it."""

from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig

from tests.harness.random_model import save_random_model

WORDS = "the quick brown fox jumps over a lazy dog and naïve café owners sigh. "


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("tiny-model")
    save_random_model(
        folder,
        LlamaConfig(
            vocab_size=300,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=1024,
            bos_token_id=None,
            eos_token_id=0,
            pad_token_id=None,
        ),
    )
    return folder


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "the quick brown"}\n{"prompt": "a lazy dog"}\n')
    return path


@pytest.fixture
def human(tmp_path: Path) -> Path:
    path = tmp_path / "human.jsonl"
    path.write_text(f'{{"text": "{WORDS * 60}"}}\n')
    return path
