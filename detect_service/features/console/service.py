"""Opens the feature: the moderation page, which signs people in where a provider is known."""

from ttmark.detect_service.api.features import Feature, Part
from ttmark.detect_service.features.console.router import console_router
from ttmark.services.opening import Opening
from ttmark.shared.pages import SignIn

FEATURE = Feature(lambda app: Part([console_router(app.provided.get(SignIn))]))


def opened(_: Opening) -> Feature:
    return FEATURE
