"""The models of a generation service: loaded, with engines that share the memory."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from ttmark.gen_service.api.backend import ServedModel
from ttmark.gen_service.decoding.json_grammar import ANY_OBJECT
from ttmark.gen_service.engine.engine_metrics import EngineMetrics
from ttmark.services.engines import RunningEngine, load_engine
from ttmark.services.model_files import read_chat_template, read_sampling_defaults
from ttmark.services.model_folder import default_model, model_id, resolve_model
from ttmark.services.runtime import StartupError
from ttmark.services.settings.generation import GenerationSettings
from ttmark.shared.schemas.sampling import SamplingDefaults

# oneDNN keeps a kernel for each shape of a product; its own 1,024 take 0.15 GB more on the demo model.
_KERNELS_KEPT = "64"


@dataclass(frozen=True)
class Models:
    """Engines by model id, each with its chat template."""

    served: Mapping[str, ServedModel]
    engines: tuple[RunningEngine, ...]

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
        engines: list[RunningEngine] = []
        served: dict[str, ServedModel] = {}
        for name, folder in folders.items():
            template = read_chat_template(folder)
            own = settings.generation_defaults == "model"
            defaults = read_sampling_defaults(folder) if own else SamplingDefaults()
            engine = load_engine(name, folder, settings)
            engine.record_in(metrics)
            engines.append(engine)
            served[name] = ServedModel(
                engine, template, settings.control_tokens, defaults, settings.reasoning
            )
            served[name].grammars.submit(ANY_OBJECT)  # its first grammar would hold up whoever is served then
        return cls(served, tuple(engines))

    def start(self) -> None:
        """Starts every engine."""
        for engine in self.engines:
            engine.start()

    async def stop(self, drain_seconds: float) -> None:
        """Stops every engine, all at once, as `Engine.stop` does."""
        await asyncio.gather(*(asyncio.to_thread(engine.stop, drain_seconds) for engine in self.engines))
