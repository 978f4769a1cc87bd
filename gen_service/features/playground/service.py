"""Opens the playground where the settings ask for it."""

from ttmark.gen_service.api.features import Feature
from ttmark.gen_service.features.playground.router import playground_router
from ttmark.gen_service.features.playground.settings import PlaygroundSettings


def opened(_: object) -> Feature:
    """The page, which hands texts over to the console at its address."""
    settings = PlaygroundSettings()
    return Feature(lambda *_: playground_router(settings.console_url)) if settings.playground else Feature()
