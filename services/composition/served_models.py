"""The models of a generation service, each with an engine, embedded or vLLM's; engines share the memory."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import structlog

from ttmark.gen_service.api.features import FEATURES, GenerationFeature, RunningEngine
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.gen_service.engine.errors import ModelLoadError
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.loop.engine_metrics import EngineMetrics
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.services.model_folder import (
    default_model,
    model_id,
    read_chat_template,
    read_sampling_defaults,
    resolve_model,
)
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.startup import StartupError, no_start_after
from ttmark.services.state_folder import choices_file
from ttmark.shared.features import modules_of
from ttmark.shared.schemas.generation.sampling import SamplingDefaults

# Of the memory that is free at start; the rest is for logits and what a pass needs.
_CACHE_SHARE = 0.25


def open_features(settings: GenerationSettings) -> tuple[GenerationFeature, ...]:
    """What the optional features add that are there.

    Raises:
        StartupError: the settings of one are not usable.
    """
    return tuple(module.opened(settings) for module in modules_of("service", FEATURES))


def load_engine(
    name: str, folder: Path, settings: GenerationSettings, features: Sequence[GenerationFeature] = ()
) -> RunningEngine:
    """The engine that the settings name, with a model in it.

    Raises:
        StartupError: the model cannot be served, or the settings do not fit the engine.
    """
    if settings.engine != "embedded":
        engines = {name: load for feature in features for name, load in feature.engines.items()}
        if settings.engine not in engines:
            raise StartupError(f"TTMARK_ENGINE={settings.engine}: there is no such engine here")
        return engines[settings.engine](name, folder)
    with no_start_after(ModelLoadError):
        engine = Engine.load(str(folder), _embedded_settings(name, settings))
    structlog.get_logger("ttmark.models").info("runs", model=name, **engine.runs_as)
    return engine


def _embedded_settings(name: str, settings: GenerationSettings) -> EngineSettings:
    # The number of threads is the process's: what suits one model must not change under another.
    measured: Literal["auto"] | None = "auto" if len(settings.model) == 1 else None
    return EngineSettings(
        model_id=name,
        dtype=settings.dtype,
        quantization=settings.quantization,
        threads=settings.threads or measured,
        max_sequences=settings.max_concurrency,
        max_waiting=settings.max_queue,
        max_branches=settings.max_branches,
        reproducible=settings.reproducible,
        choices=choices_file(settings.state),
        request_seconds=settings.request_seconds,
        memory_share=_CACHE_SHARE / len(settings.model),
    )


# oneDNN keeps a kernel for each shape of a product; its own 1,024 take 0.15 GB more on the demo model.
_KERNELS_KEPT = "64"


@dataclass(frozen=True)
class Models:
    """Engines by model id, each with its chat template, and what optional features add."""

    served: Mapping[str, ServedModel]
    engines: tuple[RunningEngine, ...]
    features: tuple[GenerationFeature, ...]

    @classmethod
    def load(cls, settings: GenerationSettings, metrics: EngineMetrics) -> "Models":
        """Loads and warms up every model, one after the other.

        Raises:
            StartupError: a model cannot be served, or two have the same name.
        """
        if not settings.model:
            model = default_model(settings.state)
            structlog.get_logger("ttmark.models").info(
                "default_model", model=model, state=str(settings.state)
            )
            settings = settings.model_copy(update={"model": (model,)})
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", _KERNELS_KEPT)
        folders: dict[str, Path] = {}
        for model in settings.model:
            if (name := model_id(model)) in folders:
                raise StartupError(f"two models are called {name!r}: rename one's folder")
            folders[name] = resolve_model(model, settings.state)
        features = open_features(settings)
        engines: list[RunningEngine] = []
        served: dict[str, ServedModel] = {}
        for name, folder in folders.items():
            template = read_chat_template(folder)
            own = settings.generation_defaults == "model"
            defaults = read_sampling_defaults(folder) if own else SamplingDefaults()
            engine = load_engine(name, folder, settings, features)
            engine.record_in(metrics)
            engines.append(engine)
            served[name] = ServedModel(engine, template, settings.control_tokens, defaults)
        return cls(served, tuple(engines), features)

    def start(self) -> None:
        for engine in self.engines:
            engine.start()

    async def stop(self, drain_seconds: float) -> None:
        await asyncio.gather(*(asyncio.to_thread(engine.stop, drain_seconds) for engine in self.engines))
