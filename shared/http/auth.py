"""Bearer tokens: paths under the protected prefix and named ones need one; each route names its scope."""

import hashlib
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from ipaddress import IPv6Address, ip_address
from typing import Annotated

import structlog
from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.service_errors import (
    ErrorRenderer,
    Forbidden,
    ServiceError,
    StoreDown,
    TooManyRequests,
    Unauthorized,
)
from ttmark.shared.vault.confidential import Confidential
from ttmark.shared.vault.stores.key_store_errors import InvalidToken, KeyStoreError

GUEST = "guest"
"""Where the scope's state has the name of a guest."""
_NAMES = 8192  # however many addresses somebody has, this bounds what is kept of them
_SUBSCRIBER_BITS = 64  # of IPv6: whoever has one address has all that differ in the others


@dataclass(frozen=True, slots=True, repr=False)
class Guests(Confidential):
    """Who sends no Authorization header to `path`, in a POST, is answered under `token`.

    Attributes:
        token: what they are let in with; whatever else it allows stays shut.
        key: makes names of addresses that nobody can turn back, the same in all replicas. Few addresses share
            one by chance; they are counted together.
        admit: asked with a guest's name: None, or the seconds after which to try again.
    """

    path: str
    token: str
    key: bytes
    admit: Callable[[str], Awaitable[float | None]]

    def are_asking(self, scope: AsgiScope, headers: Headers) -> bool:
        """Whether this is a guest's request. A header that is empty or wrong is not the absence of one."""
        return scope["method"] == "POST" and scope["path"] == self.path and "authorization" not in headers

    async def let_in(self, scope: AsgiScope) -> None:
        """Counts a request by its address, and puts the guest's name into the scope's state.

        Raises:
            TooManyRequests: the address has sent too many.
        """
        name = scope["state"][GUEST] = self._name(scope.get("client"))
        wait = await self.admit(name)
        if wait is not None:
            raise TooManyRequests("Too many requests come from this address.", retry_after=wait)

    def _name(self, client: tuple[str, int] | None) -> str:
        network = subscriber(client[0] if client else "")
        digest = hashlib.blake2b(network.encode(), digest_size=8, key=self.key).digest()
        return f"{int.from_bytes(digest) % _NAMES:04x}"


def subscriber(address: str) -> str:
    """Whose address it is: of IPv6 the first 64 bits; all that is no address is one subscriber."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return ""
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return f"{int(parsed) >> (128 - _SUBSCRIBER_BITS):x}/{_SUBSCRIBER_BITS}"
    return str(parsed)


Authenticate = Callable[[str], Awaitable[Principal]]
# None when the request is within the limits of who sends it, else the seconds after which to try again.
Admit = Callable[[Principal], Awaitable[float | None]]
PROTECTED_PREFIX = "/v1/"
_LONGEST_TOKEN = 8192
"""What an OpenID provider signs may hold a person's groups."""


@dataclass(frozen=True, eq=False)
class BearerMiddleware:
    """Authenticates, and counts against the token's limits, before the body is read.

    Outside the prefix and the further `paths` nothing is asked. Where there are `guests`, who sends no
    Authorization header to their route is let in under their token.

    The principal is in the scope's state afterwards, its token id and tenant in the log context.
    """

    app: ASGIApp
    authenticate: Authenticate
    admit: Admit | None
    render: ErrorRenderer
    guests: Guests | None = None
    paths: Collection[str] = ()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._protects(scope["path"]):
            await self.app(scope, receive, send)
            return
        try:
            principal = await self._principal(scope)
        except ServiceError as error:
            await self.render(error, scope)(scope, receive, send)
            return
        scope["state"]["principal"] = principal
        with structlog.contextvars.bound_contextvars(token_id=principal.token_id, tenant=principal.tenant):
            await self.app(scope, receive, send)

    def _protects(self, path: str) -> bool:
        return path.startswith(PROTECTED_PREFIX) or path in self.paths

    async def _principal(self, scope: AsgiScope) -> Principal:
        headers = Headers(scope=scope)
        if self.guests is not None and self.guests.are_asking(scope, headers):
            await self.guests.let_in(scope)
            guest = await self._bearer(f"Bearer {self.guests.token}")
            return replace(guest, scopes=guest.scopes & {Scope.DETECT_PUBLIC})
        return await self._bearer(headers.get("authorization", ""))

    async def _bearer(self, authorization: str) -> Principal:
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() == "bearer" and not token:
            raise _unauthorized("The access token is empty: Authorization: Bearer TOKEN.", "Bearer")
        if scheme.lower() != "bearer":
            raise _unauthorized("Send an access token: Authorization: Bearer TOKEN.", "Bearer")
        challenge = 'Bearer error="invalid_token"'
        if len(token) > _LONGEST_TOKEN:
            raise _unauthorized("The access token is not valid.", challenge)
        try:
            principal = await self.authenticate(token)
            wait = await self.admit(principal) if self.admit is not None else None
        except InvalidToken:
            raise _unauthorized("The access token is not valid or has expired.", challenge) from None
        except KeyStoreError as error:
            structlog.get_logger("ttmark.auth").error("authentication_failed", error=type(error).__name__)
            raise StoreDown("Access tokens cannot be checked at the moment.", retry_after=1) from None
        if wait is not None:
            raise TooManyRequests("The access token's limit of requests is reached.", retry_after=wait)
        return principal


def _unauthorized(message: str, challenge: str) -> Unauthorized:
    return Unauthorized(message, headers={"WWW-Authenticate": challenge})


_BEARER = HTTPBearer(auto_error=False, description="An access token; see `ttmark tokens create`.")


def require(scope: Scope) -> Callable[..., Awaitable[Principal]]:
    """A dependency that gives the caller's `Principal`, or 403 where it lacks `scope`."""

    # `async`, although it awaits nothing: the framework runs a plain function on a thread.
    async def principal_with_scope(
        request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
    ) -> Principal:
        return caller_with_scope(request, scope)

    return principal_with_scope


def caller_with_scope(request: Request, scope: Scope) -> Principal:
    """Who sends the request.

    Raises:
        Unauthorized: nobody was authenticated.
        Forbidden: the token lacks the scope.
    """
    principal: Principal | None = request.scope["state"].get("principal")
    if principal is None:
        raise _unauthorized("Send an access token: Authorization: Bearer TOKEN.", "Bearer")
    check_scope(principal, scope)
    return principal


def check_scope(principal: Principal, scope: Scope) -> None:
    """Refuses a principal without `scope`.

    Raises:
        Forbidden: naming the scope that is missing.
    """
    if scope not in principal.scopes:
        raise Forbidden(
            f"The access token lacks the scope {scope.value!r}.",
            headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope.value}"'},
        )
