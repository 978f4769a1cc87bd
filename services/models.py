"""The models of a generation service: loaded, with engines that share the memory."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import structlog

from ttmark.gen_service.api.backend import ServedModel
from ttmark.gen_service.decoding.json_grammar import ANY_OBJECT
from ttmark.gen_service.engine import Engine, EngineSettings, ModelLoadError
from ttmark.gen_service.engine.engine_metrics import EngineMetrics
from ttmark.services.chat_template import read_chat_template
from ttmark.services.model_folder import default_model, model_id, resolve_model
from ttmark.services.runtime import StartupError, no_start_after
from ttmark.services.settings import GenerationSettings
from ttmark.services.state_folder import choices_file

# Of the memory that is free at start; the rest is for logits and what a pass needs.
_CACHE_SHARE = 0.25

# oneDNN keeps a kernel for each shape of a product; its own 1,024 take 0.15 GB more on the demo model.
_KERNELS_KEPT = "64"


@dataclass(frozen=True)
class Models:
    """Engines by model id, each with its chat template."""

    served: Mapping[str, ServedModel]
    engines: tuple[Engine, ...]

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
        engines: list[Engine] = []
        served: dict[str, ServedModel] = {}
        for name, folder in folders.items():
            template = read_chat_template(folder)
            with no_start_after(ModelLoadError):
                engine = Engine.load(str(folder), _engine_settings(name, settings))
            engine.record_in(metrics)
            engines.append(engine)
            served[name] = ServedModel(engine, template, settings.control_tokens)
            served[name].grammars.submit(ANY_OBJECT)  # its first grammar would hold up whoever is served then
        return cls(served, tuple(engines))

    def start(self) -> None:
        """Starts every engine."""
        for engine in self.engines:
            engine.start()

    async def stop(self, drain_seconds: float) -> None:
        """Stops every engine, all at once, as `Engine.stop` does."""
        await asyncio.gather(*(asyncio.to_thread(engine.stop, drain_seconds) for engine in self.engines))


def _engine_settings(name: str, settings: GenerationSettings) -> EngineSettings:
    # The number of threads is the process's: what suits one model must not change under another.
    measured: Literal["auto"] | None = "auto" if len(settings.model) == 1 else None
    return EngineSettings(
        model_id=name,
        dtype=settings.dtype,
        threads=settings.threads or measured,
        max_sequences=settings.max_concurrency,
        max_waiting=settings.max_queue,
        max_branches=settings.max_branches,
        adaptive_branches=settings.adaptive_branches,
        prefix_cache=settings.prefix_cache,
        reproducible=settings.reproducible,
        choices=choices_file(settings.state),
        request_seconds=settings.request_seconds,
        memory_share=_CACHE_SHARE / len(settings.model),
    )
