"""Opens tools, reasoning and forms of answers."""

from ttmark.gen_service.api.features import GenerationFeature
from ttmark.gen_service.features.structured.forms import Forms
from ttmark.gen_service.features.structured.settings import ReasoningSettings


def opened(_: object) -> GenerationFeature:
    return GenerationFeature(hooks=(Forms(ReasoningSettings().reasoning),))
