"""Opens the playground where the settings ask for it."""

from ttmark.gen_service.api.features import GenerationFeature
from ttmark.gen_service.features.playground.router import playground_router
from ttmark.gen_service.features.playground.settings import PlaygroundSettings


def opened(_: object) -> GenerationFeature:
    """The page, which hands texts over to the console at its address."""
    settings = PlaygroundSettings()
    return (
        GenerationFeature(lambda *_: playground_router(settings.console_url))
        if settings.playground
        else GenerationFeature()
    )
