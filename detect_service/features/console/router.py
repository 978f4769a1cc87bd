"""`GET /`: the moderation console, static files under a strict content security policy."""

from dataclasses import asdict

from fastapi import APIRouter

from ttmark.shared.pages import SignIn, page_router


def console_router(sign_in: SignIn | None = None) -> APIRouter:
    """The page and its files, and by which provider people sign in, if by any."""
    router = APIRouter(include_in_schema=False)

    @router.get("/console/sign-in.json")
    async def provider() -> dict[str, str] | None:
        return None if sign_in is None else asdict(sign_in)

    origins = () if sign_in is None else (sign_in.origin,)
    router.include_router(page_router("/", "console", "ttmark.detect_service.features.console", origins))
    return router
