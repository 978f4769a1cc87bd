"""`load` runs a model as the generation service does, or so that a seed gives the same text."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import ttmark
from tests.unit.engine.test_quantised_models import save_of_four_bits
from ttmark.gen_service.engine import loading
from ttmark.gen_service.engine.autotune import own_threads
from ttmark.gen_service.engine.engine import Engine
from ttmark.gen_service.engine.native import find_kernels
from ttmark.library.model import EngineWriter
from ttmark.services.served_models import _embedded_settings
from ttmark.services.settings.generation import GenerationSettings


def engine_of(model: ttmark.Model) -> Engine:
    assert isinstance(model._writer, EngineWriter)
    return model._writer._engine


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
        assert engine._runner.model.dtype == torch.bfloat16
        assert engine._runner.weights == ("int4" if find_kernels() else "plain")


def test_a_seed_gives_the_same_text_in_any_list_if_that_was_asked_for(key: ttmark.Key) -> None:
    with ttmark.load("demo"):  # leaves torch at another number of threads, it may be
        pass
    options: dict[str, Any] = {"key": key, "max_new_tokens": 40, "temperature": 1.0}
    with ttmark.load("demo", reproducible=True) as model:
        assert torch.get_num_threads() == own_threads()
        assert engine_of(model)._runner.model.dtype == torch.float32
        alone = model.generate("Once", seed=3, **options)
        assert model.generate(["A", "The old", "It", "Once"], seed=0, **options)[3] == alone
