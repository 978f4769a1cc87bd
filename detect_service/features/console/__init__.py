"""`GET /`: the moderation console, static files under a strict content security policy."""

from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from fastapi import APIRouter

from ttmark.shared.pages import page_router


@dataclass(frozen=True, slots=True)
class SignIn:
    """What the console needs to sign people in at an OpenID provider: nothing of it is secret.

    Attributes:
        client_id: of a public client.
        audience: of the access tokens that it asks for.
    """

    issuer: str
    client_id: str
    audience: str

    @property
    def origin(self) -> str:
        """The provider's, which the console asks for a token."""
        parts = urlsplit(self.issuer)
        return f"{parts.scheme}://{parts.netloc}"


def console_router(sign_in: SignIn | None = None) -> APIRouter:
    """The page and its files, and by which provider people sign in, if by any."""
    router = APIRouter(include_in_schema=False)

    @router.get("/console/sign-in.json")
    async def provider() -> dict[str, str] | None:
        return None if sign_in is None else asdict(sign_in)

    origins = () if sign_in is None else (sign_in.origin,)
    router.include_router(page_router("/", "console", "ttmark.detect_service.features.console", origins))
    return router


__all__ = ["SignIn", "console_router"]
