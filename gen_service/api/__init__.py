"""The HTTP interface of the generation service: OpenAI's routes over any `Generator`."""

from gen_service.api.app import create_generation_app
from gen_service.api.backend import GenerationBackend, GenerationLimits, KeySource, ServedModel
from gen_service.api.chat_template import ChatTemplate
from gen_service.api.generator import Generator

__all__ = [
    "ChatTemplate",
    "GenerationBackend",
    "GenerationLimits",
    "Generator",
    "KeySource",
    "ServedModel",
    "create_generation_app",
]
