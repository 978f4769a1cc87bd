"""What of vLLM is served, and what is refused in one line."""

from pathlib import Path
from typing import Any

import pytest

from tests.features.vllm.installed.conftest import load_vllm
from ttmark.gen_service.engine.errors import ModelLoadError
from ttmark.gen_service.features.vllm.vllm_settings import VERSIONS

vllm = pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")


def test_the_version_is_one_of_those_that_are_served() -> None:
    assert vllm.__version__.split("+")[0] in VERSIONS


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"enable_lora": True}, "LoRA adapters are not supported on vLLM"),
        ({"worker_cls": "mine"}, "vLLM's worker_cls cannot be set: TTMark sets it"),
        ({"generation_config": "auto"}, "vLLM's generation_config cannot be set: TTMark sets it"),
        ({"pipeline_parallel_size": 2}, "pipeline parallelism is not supported on vLLM"),
        ({"no_such_thing": 1}, "no_such_thing"),
    ],
)
def test_what_is_not_supported_is_refused_in_one_line(
    llama: Path, chosen: dict[str, Any], message: str
) -> None:
    with pytest.raises(ModelLoadError, match=message) as refusal:
        load_vllm(llama, chosen)
    assert "\n" not in str(refusal.value)


def test_another_version_is_refused(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm, "__version__", "0.33.1")
    with pytest.raises(
        ModelLoadError, match=r"^vLLM 0\.33\.1 is installed; .* runs on 0\.32\.0 or 0\.33\.0$"
    ):
        load_vllm(llama)


def test_state_space_layers_are_refused(tmp_path: Path) -> None:
    from transformers import MambaConfig

    from tests.harness.random_model import save_random_model

    folder = tmp_path / "mamba"
    save_random_model(folder, MambaConfig(vocab_size=300, hidden_size=32, num_hidden_layers=2, state_size=8))
    with pytest.raises(ModelLoadError, match=r"state-space layers are not supported|vLLM refuses"):
        load_vllm(folder)
