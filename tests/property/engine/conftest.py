"""A tiny random model on disk, loaded once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import Gemma3TextConfig, LlamaConfig, PreTrainedConfig

from tests.harness.random_model import save_random_model

SHAPE = {
    "vocab_size": 300,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
    "tie_word_embeddings": False,  # tied random weights only echo the last token
    "bos_token_id": None,
    "eos_token_id": 0,
    "pad_token_id": None,
}


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session", params=["llama", "sliding"])
def model_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config: PreTrainedConfig = LlamaConfig(**SHAPE)
    if request.param == "sliding":
        layers = ["sliding_attention", "full_attention"]
        config = Gemma3TextConfig(**SHAPE, head_dim=12, sliding_window=16, layer_types=layers)
    folder = tmp_path_factory.mktemp("models") / str(request.param)
    save_random_model(folder, config)
    return folder
