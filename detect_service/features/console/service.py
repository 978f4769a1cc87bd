"""Opens the feature: the moderation page, which signs people in where a provider is known."""

from dataclasses import asdict

from fastapi import APIRouter

from ttmark.detect_service.api.features import Application, DetectionFeature, Part
from ttmark.services.composition.opening import Opening
from ttmark.shared.pages import SignIn, page_router


def opened(_: Opening) -> DetectionFeature:
    return FEATURE


def _part(app: Application) -> Part:
    """The page and its files, and by which provider people sign in, if by any."""
    router, sign_in = APIRouter(include_in_schema=False), app.provided.get(SignIn)

    @router.get("/console/sign-in.json")
    async def provider() -> dict[str, str] | None:
        return None if sign_in is None else asdict(sign_in)

    origins = () if sign_in is None else (sign_in.origin,)
    return Part([router, page_router("/", "console", "ttmark.detect_service.features.console", origins)])


FEATURE = DetectionFeature(_part)
