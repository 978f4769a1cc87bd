"""Settings of vLLM's engine."""

from pydantic import Field

from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import ReadableFile


class EngineFileSettings(Settings):
    engine_file: ReadableFile | None = Field(
        default=None, description="With `vllm`: a YAML file with further arguments, in vLLM's own names."
    )
