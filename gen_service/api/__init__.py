"""The HTTP interface of the generation service: OpenAI's routes over any `Generator`."""

from ttmark.gen_service.api.app import create_generation_app
from ttmark.gen_service.api.backend import (
    GenerationBackend,
    Generator,
    KeyProvider,
    RequestLimits,
    ServedModel,
)
from ttmark.gen_service.api.chat_template import ChatTemplate

__all__ = [
    "ChatTemplate",
    "GenerationBackend",
    "Generator",
    "KeyProvider",
    "RequestLimits",
    "ServedModel",
    "create_generation_app",
]
