"""`load` runs a model as the generation service does, or so that a seed gives the same text."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
import torch

import ttmark
from tests.harness.random_model import save_random_model
from tests.unit.gen_service.engine.architectures import SERVED
from tests.unit.gen_service.engine.test_quantised_models import save_of_four_bits
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.model import loading
from ttmark.gen_service.engine.model.autotune import own_threads
from ttmark.gen_service.engine.native import find_kernels
from ttmark.library.model import EngineWriter
from ttmark.services.composition.served_models import _embedded_settings, load_engine
from ttmark.services.settings.generation import GenerationSettings
from ttmark.shared.watermark.compiled import usable_levels


def engine_of(model: ttmark.Model) -> Engine:
    assert isinstance(model._writer, EngineWriter)
    return model._writer._engine


@pytest.mark.skipif(find_kernels() is None, reason="no compiler, or no such processor")
def test_a_model_runs_as_the_service_runs_it_and_the_second_time_nothing_is_measured(
    tmp_path: Path, folder_of_choices: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_of_four_bits(tmp_path)
    with ttmark.load(tmp_path):
        pass
    monkeypatch.delattr(loading, "_tried_apart")
    with ttmark.load(tmp_path) as again:
        engine = engine_of(again)
        service = GenerationSettings(model=("demo",), state=folder_of_choices)
        expected = _embedded_settings(tmp_path.name, service)
        limits: dict[str, Any] = {"max_waiting": engine._settings.max_waiting, "request_seconds": None}
        assert engine._settings == replace(expected, **limits)
        kernels = find_kernels()
        assert kernels is not None
        runs = {"dtype": "bfloat16", "threads": torch.get_num_threads(), "matrices": "int4"}
        assert engine.runs_as == runs | {"kernels": kernels.level}
        assert kernels.level in {level.name for level in usable_levels()}


def test_a_seed_gives_the_same_text_in_any_list_if_that_was_asked_for(key: ttmark.Key) -> None:
    with ttmark.load("demo"):  # leaves torch at another number of threads, it may be
        pass
    options: dict[str, Any] = {"key": key, "max_new_tokens": 40, "temperature": 1.0}
    with ttmark.load("demo", reproducible=True) as model:
        assert torch.get_num_threads() == own_threads()
        assert engine_of(model)._runner.model.dtype == torch.float32
        alone = model.generate("Once", seed=3, **options)
        assert model.generate(["A", "The old", "It", "Once"], seed=0, **options)[3] == alone


@pytest.mark.skipif(find_kernels() is None, reason="no compiler, or no such processor")
@pytest.mark.parametrize("compiled", [True, False])
def test_the_service_says_how_a_model_runs_also_where_a_processor_has_no_fast_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    save_random_model(tmp_path, SERVED["Qwen 3"])
    if not compiled:
        for module in ("transformers_model", "loaded_model"):
            monkeypatch.setattr(f"ttmark.gen_service.engine.model.{module}.find_kernels", lambda: None)
    settings = GenerationSettings(model=("demo",), quantization="int8", state=tmp_path)
    with structlog.testing.capture_logs() as logs:
        load_engine("qwen", tmp_path, settings)
    said = [(line["matrices"], line["kernels"]) for line in logs if line["event"] == "runs"]
    assert [(matrices, kernels is not None) for matrices, kernels in said] == [
        ("int8" if compiled else "plain", compiled)
    ]
