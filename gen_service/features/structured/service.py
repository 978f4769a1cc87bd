"""Opens tools, reasoning and forms of answers."""

from ttmark.gen_service.api.features import Feature
from ttmark.gen_service.features.structured.forms import Forms
from ttmark.gen_service.features.structured.settings import ReasoningSettings


def opened(_: object) -> Feature:
    return Feature(hooks=(Forms(ReasoningSettings().reasoning),))
