"""The models of a generation service: loaded, with engines that share the memory."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gen_service.api.backend import ServedModel
from gen_service.engine import Engine, EngineSettings, ModelLoadError
from services.chat_template import read_chat_template
from services.model_folder import model_id, resolve_model
from services.runtime import StartupError
from services.settings import GenerationSettings
from shared.observability.engine_metrics import EngineMetrics

# Of the memory that is free at start; the rest is for logits and what a pass needs.
_CACHE_SHARE = 0.25


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
        folders: dict[str, Path] = {}
        for model in settings.model:
            if (name := model_id(model)) in folders:
                raise StartupError(f"two models are called {name!r}: rename one's folder")
            folders[name] = resolve_model(model)
        engines: list[Engine] = []
        served: dict[str, ServedModel] = {}
        for name, folder in folders.items():
            template = read_chat_template(folder)
            engine = _load(folder, _engine_settings(name, settings))
            engine.record_in(metrics)
            engines.append(engine)
            served[name] = ServedModel(engine, template)
        return cls(served, tuple(engines))

    def start(self) -> None:
        """Starts every engine."""
        for engine in self.engines:
            engine.start()

    async def stop(self, drain_seconds: float) -> None:
        """Stops every engine, all at once, as `Engine.stop` does."""
        await asyncio.gather(*(asyncio.to_thread(engine.stop, drain_seconds) for engine in self.engines))


def _load(folder: Path, settings: EngineSettings) -> Engine:
    try:
        return Engine.load(str(folder), settings)
    except ModelLoadError as error:
        raise StartupError(str(error)) from error


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
        request_seconds=settings.request_seconds,
        memory_share=_CACHE_SHARE / len(settings.model),
    )
