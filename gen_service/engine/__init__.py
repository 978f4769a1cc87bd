"""The generation engine: `Engine.load(...)`, `start`, `generate`, `stop`."""

from gen_service.engine.engine import Engine
from gen_service.engine.errors import (
    ContextTooLong,
    Draining,
    EngineDied,
    EngineError,
    ModelLoadError,
    OutOfTime,
    Overloaded,
    SequenceFailed,
)
from gen_service.engine.request import (
    Delta,
    FinishReason,
    GenerationRequest,
    Marking,
    MarkReport,
    SamplingParams,
    TokenLogprob,
)
from gen_service.engine.settings import EngineSettings
from gen_service.engine.worker import EngineStats

__all__ = [
    "ContextTooLong",
    "Delta",
    "Draining",
    "Engine",
    "EngineDied",
    "EngineError",
    "EngineSettings",
    "EngineStats",
    "FinishReason",
    "GenerationRequest",
    "MarkReport",
    "Marking",
    "ModelLoadError",
    "OutOfTime",
    "Overloaded",
    "SamplingParams",
    "SequenceFailed",
    "TokenLogprob",
]
