"""Everything of vLLM that is touched is there, as it was; an upgrade fails here first."""

import dataclasses
import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import Any

import pytest

from tests.vllm.conftest import load_vllm
from tests.vllm.touched import RUNNER_ATTRIBUTES, TOUCHED
from ttmark.gen_service.engine import ModelLoadError

vllm = pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")


def names_of(found: Any) -> set[str]:
    """Parameters of a function, or fields of a class."""
    if isinstance(found, property) or not callable(found):
        return set()
    fields = getattr(found, "__struct_fields__", ())  # of msgspec
    if dataclasses.is_dataclass(found):
        fields = tuple(field.name for field in dataclasses.fields(found))
    try:
        return {*fields, *inspect.signature(found).parameters}
    except ValueError:
        return set(fields)


@pytest.mark.parametrize("name", TOUCHED)
def test_what_is_touched_is_there(name: str) -> None:
    found = pkgutil.resolve_name(_with_colon(name))
    assert set(TOUCHED[name]) <= names_of(found)


def _with_colon(name: str) -> str:
    """`package.module:Class.member`, as `resolve_name` tells modules from what is in them."""
    parts = name.split(".")
    first = next((at for at, part in enumerate(parts) if part[0].isupper()), len(parts) - 1)
    return ".".join(parts[:first]) + ":" + ".".join(parts[first:])


def test_the_runner_has_the_attributes_that_are_read() -> None:
    runner = importlib.import_module("vllm.v1.worker.gpu_model_runner")
    source = inspect.getsource(runner)
    assert [name for name in RUNNER_ATTRIBUTES if f"self.{name}" not in source] == []


def test_the_version_is_the_pinned_one() -> None:
    from ttmark.gen_service.vllm_engine.arguments import VERSION  # needs vLLM

    assert vllm.__version__.split("+")[0] == VERSION


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
    with pytest.raises(ModelLoadError, match=r"^vLLM 0\.33\.1 is installed; .* runs on 0\.32\.0 alone$"):
        load_vllm(llama)


def test_state_space_layers_are_refused(tmp_path: Path) -> None:
    from transformers import MambaConfig

    from tests.harness.random_model import save_random_model

    folder = tmp_path / "mamba"
    save_random_model(folder, MambaConfig(vocab_size=300, hidden_size=32, num_hidden_layers=2, state_size=8))
    with pytest.raises(ModelLoadError, match=r"state-space layers are not supported|vLLM refuses"):
        load_vllm(folder)
