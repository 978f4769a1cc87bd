"""A tiny random model on disk, loaded once."""

from pathlib import Path

import pytest
from transformers import Gemma3TextConfig, LlamaConfig, PreTrainedConfig

from tests.harness.random_model import SMALL, save_random_model
from tests.unit.gen_service.engine.architectures import WEIGHTS
from tests.unit.gen_service.engine.conftest import one_thread

__all__ = ["one_thread"]
SHAPE = {**SMALL, **WEIGHTS, "hidden_size": 48, "intermediate_size": 80}


@pytest.fixture(scope="session", params=["llama", "sliding"])
def model_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config: PreTrainedConfig = LlamaConfig(**SHAPE)
    if request.param == "sliding":
        layers = ["sliding_attention", "full_attention"]
        config = Gemma3TextConfig(**SHAPE, head_dim=12, sliding_window=16, layer_types=layers)
    folder = tmp_path_factory.mktemp("models") / str(request.param)
    save_random_model(folder, config)
    return folder
