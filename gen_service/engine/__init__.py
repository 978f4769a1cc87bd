"""The embedded engine: `Engine.load(...)`, `start`, `generate`, `stop`."""

from ttmark.gen_service.decoding.request import (
    Delta,
    FinishReason,
    GenerationRequest,
    Marking,
    MarkReport,
    ReadingRequest,
    SamplingParams,
    SequenceFailed,
    TokenLogprob,
)
from ttmark.gen_service.engine.engine import Engine
from ttmark.gen_service.engine.errors import (
    ContextTooLong,
    Draining,
    EngineDied,
    EngineError,
    ModelLoadError,
    OutOfTime,
    Overloaded,
)
from ttmark.gen_service.engine.settings import EngineSettings

__all__ = [
    "ContextTooLong",
    "Delta",
    "Draining",
    "Engine",
    "EngineDied",
    "EngineError",
    "EngineSettings",
    "FinishReason",
    "GenerationRequest",
    "MarkReport",
    "Marking",
    "ModelLoadError",
    "OutOfTime",
    "Overloaded",
    "ReadingRequest",
    "SamplingParams",
    "SequenceFailed",
    "TokenLogprob",
]
