"""Pages that the services serve to people: static files under a strict content security policy.

Files in `shared/pages/static` (colours, layout, forms, small helpers) belong to every page and are served
beside its own.
"""

import hashlib
import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response

from ttmark.shared.http.service_errors import NotFound

# Nothing from elsewhere, nothing inline, no frames, no forms that leave: a pasted text stays a text.
_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-cache",
    }
)


@dataclass(frozen=True, slots=True)
class SignIn:
    """What a page needs to sign people in at an OpenID provider: nothing of it is secret.

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


def page_router(path: str, folder: str, package: str, origins: Sequence[str] = ()) -> APIRouter:
    """The page at `path`, its files below `/{folder}/`; all are read once.

    Args:
        package: whose folder `static` holds them, an `index.html` among them.
        origins: others that the page may ask.
    """
    asked = " ".join(("connect-src 'self'", *origins))
    policy = {"Content-Security-Policy": "; ".join((*_POLICY, asked))}
    assets = {**_read_assets("ttmark.shared.pages"), **_read_assets(package)}
    router = APIRouter(include_in_schema=False)

    def answer(name: str, request: Request) -> Response:
        if name not in assets:
            raise NotFound("There is no such file.")
        content, media_type, etag = assets[name]
        headers = {**policy, **HEADERS, "ETag": etag}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=media_type, headers=headers)

    @router.api_route(path, methods=["GET", "HEAD"])
    async def page(request: Request) -> Response:
        return answer("index.html", request)

    @router.api_route(f"/{folder}/{{name}}", methods=["GET", "HEAD"])
    async def file(name: str, request: Request) -> Response:
        return answer(name, request)

    return router


def _read_assets(package: str) -> dict[str, tuple[bytes, str, str]]:
    """Content, media type and entity tag of each file, by its name."""
    assets = {}
    for resource in files(package).joinpath("static").iterdir():
        content = resource.read_bytes()
        media_type = mimetypes.guess_type(resource.name)[0] or "application/octet-stream"
        digest = hashlib.sha256(content).hexdigest()[:32]
        assets[resource.name] = content, media_type, f'"{digest}"'
    return assets
