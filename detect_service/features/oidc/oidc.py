"""Sign-in by a company's OpenID provider: its JWT access tokens (RFC 9068) open what tokens of ours do."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson
import structlog
from joserfc import jws, jwt
from joserfc.errors import BadSignatureError, JoseError
from joserfc.jwk import Key, import_key

from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.outgoing import http_client
from ttmark.shared.vault.stores.key_store_errors import ExpiredToken, InvalidToken, StoreUnavailable

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures that the provider alone can make. None is by a secret that we would hold as well."""

LEEWAY_SECONDS = 30
KEYS_FRESH_SECONDS = 600.0
KEYS_LAST_SECONDS = 3_600.0
RETRY_SECONDS = 10.0
READ_SECONDS = 3.0
"""For all that one reading of the keys asks the provider."""

_MOST_BYTES = 1 << 20
_MOST_KEYS = 32
"""A token that names no key is tried with all of them."""

_KINDS = ("jwt", "at+jwt")
"""What `typ` may say of an access token (RFC 9068, 4); an absent one says nothing."""

Authenticate = Callable[[str], Awaitable[Principal]]


@dataclass(frozen=True, slots=True)
class OidcRules:
    """Whose tokens are taken, and what they open.

    Attributes:
        issuer: the provider's identifier, as `iss` in its tokens, without a slash more or less.
        audience: what `aud` in a token for this service is, or holds.
        scopes: what everybody may do whom the provider gives such a token.
        evidence_group: members of this group, by the claim `groups`, also see evidence; None: nobody does
            beyond `scopes`.
    """

    issuer: str
    audience: str
    tenant: str
    scopes: frozenset[Scope]
    evidence_group: str | None = None


def provider_client(transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncClient:
    """The client for a provider. Nobody's token is sent to it, and a proxy of the environment is used."""
    return http_client(seconds=READ_SECONDS, most_bytes=_MOST_BYTES, transport=transport)


class OidcTokens:
    """Checks the tokens of one provider with the keys that it publishes.

    Keys at hand are used at once, whatever the provider does. They are read anew beside that: every five
    minutes while `kept_fresh` runs, and where a token names a key that is not among them, but never twice in
    ten seconds. Who bears such a token waits for the reading, three seconds at the most; nobody else does.
    While the provider is away known keys last for an hour. Nobody is asked about a token: it opens until it
    expires.

    Args:
        client: of `provider_client`; the caller closes it.
        now: seconds since 1970.
    """

    def __init__(
        self,
        rules: OidcRules,
        client: httpx.AsyncClient,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = rules
        self._client = client
        self._monotonic = monotonic
        self._algorithms = _algorithms()
        self._claims = jwt.JWTClaimsRegistry(
            now=lambda: int(now()),
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": rules.issuer},
            aud={"essential": True, "value": rules.audience},
            sub={"essential": True},
            exp={"essential": True},
        )
        self._keys: Sequence[_NamedKey] = ()
        self._read_at = self._tried_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self._log = structlog.get_logger("ttmark.auth")

    def beside(self, ours: Authenticate) -> Authenticate:
        """Takes a token of three parts as the provider's, any other as one of ours."""

        return lambda token: (self.authenticate if token.count(".") == 2 else ours)(token)

    @asynccontextmanager
    async def kept_fresh(self) -> AsyncIterator[None]:
        """Reads the keys anew in time, so that one that was withdrawn ends and nobody waits for it."""
        keeping = asyncio.create_task(self._keep_fresh())
        try:
            yield
        finally:
            for task in (keeping, self._reading):
                if task is not None:
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task

    async def authenticate(self, token: str) -> Principal:
        """Who bears the token.

        Raises:
            ExpiredToken: its time is over.
            InvalidToken: it is forged, malformed, of another kind, or for another service.
            StoreUnavailable: the provider's keys are not at hand.
        """
        try:
            claims = await self._verified(token)
        except (JoseError, ValueError, TypeError) as error:
            raise InvalidToken from error
        try:
            self._claims.validate(claims)
        except JoseError as error:
            raise (ExpiredToken if error.error == "expired_token" else InvalidToken) from error
        if "cnf" in claims:
            raise InvalidToken("the token is bound to a key, of which a bearer shows nothing (RFC 7800)")
        return self._principal(claims)

    async def _verified(self, token: str) -> dict[str, Any]:
        """The claims of a token that one of the provider's keys signed."""
        header = jws.extract_compact(token.encode()).headers()
        kind = header.get("typ", "JWT")
        if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _KINDS:
            raise InvalidToken("the token says that it is of another kind")
        key_id = header.get("kid")
        await self._have_keys(lambda: self._fitting(key_id))
        for key in self._fitting(key_id):
            with suppress(JoseError, ValueError, TypeError):
                return jwt.decode(token, key, registry=self._algorithms).claims
        raise BadSignatureError

    def _fitting(self, key_id: object) -> list[Key]:
        """The keys that a token which names this one, or None, may be signed with."""
        return [key for name, key in self._keys if key_id is None or name == key_id]

    def _principal(self, claims: dict[str, Any]) -> Principal:
        rules, groups = self._rules, claims.get("groups")
        member = groups == rules.evidence_group or (
            isinstance(groups, list) and rules.evidence_group in groups
        )
        person = hashlib.sha256(f"{rules.issuer}\0{claims['sub']}".encode()).hexdigest()[:24]
        more = {Scope.DETECT_EVIDENCE} if member and rules.evidence_group is not None else set()
        return Principal(f"oidc-{person}", rules.tenant, rules.scopes | more)

    async def _have_keys(self, fitting: Callable[[], list[Key]]) -> None:
        """Waits for the provider only where no key at hand fits, or they are old and nobody has tried since.

        Raises:
            StoreUnavailable: there are none, or the last reading is too long ago.
        """
        was_tried = self._tried_at > self._read_at
        if not fitting() or (self._age() >= KEYS_FRESH_SECONDS and not was_tried):
            self._read_anew()
            if self._reading is not None:
                await asyncio.shield(self._reading)
        elif self._age() >= KEYS_FRESH_SECONDS:
            self._read_anew()
        if not self._keys or self._age() >= KEYS_LAST_SECONDS:
            raise StoreUnavailable("the OpenID provider's keys cannot be read")

    def _age(self) -> float:
        return self._monotonic() - self._read_at

    def _read_anew(self) -> None:
        """Begins to read the keys, unless that is under way or was tried a moment ago."""
        if self._reading is None and self._monotonic() - self._tried_at >= RETRY_SECONDS:
            self._tried_at = self._monotonic()
            self._reading = asyncio.create_task(self._read())

    async def _keep_fresh(self) -> None:
        while True:
            if self._age() >= KEYS_FRESH_SECONDS / 2:
                self._read_anew()
            await asyncio.sleep(RETRY_SECONDS)

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(READ_SECONDS):  # for both documents
                self._keys = await self._published()
            self._read_at = self._tried_at
        except (httpx.HTTPError, JoseError, ValueError, KeyError, TypeError, TimeoutError) as error:
            self._log.warning("oidc_keys_not_read", error=type(error).__name__)
        finally:
            self._reading = None

    async def _published(self) -> Sequence["_NamedKey"]:
        issuer = self._rules.issuer
        about = await self._document(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if about["issuer"] != issuer:
            raise ValueError("the provider calls itself otherwise")
        published = (await self._document(about["jwks_uri"]))["keys"]
        known = [key for key in map(_signing_key, published[:_MOST_KEYS]) if key is not None]
        if not known:
            raise ValueError("the provider publishes no key that signs and that is known here")
        return known

    async def _document(self, url: str) -> Any:
        if urlsplit(url).scheme != urlsplit(self._rules.issuer).scheme:
            raise ValueError("the provider's keys are not read over http where it is https itself")
        return orjson.loads((await self._client.get(url)).raise_for_status().content)  # of any depth


def _algorithms() -> jws.JWSRegistry:
    """Those of `ALGORITHMS`; `EdDSA`, which RFC 9864 gives another name, without a warning for each token."""
    registry = jws.JWSRegistry(algorithms=ALGORITHMS)
    eddsa = copy(registry.algorithms["EdDSA"])
    eddsa.security_warning = None
    registry.algorithms = {**registry.algorithms, eddsa.name: eddsa}
    return registry


_NamedKey = tuple[str | None, Key]
"""A key under the `kid` that it is published with."""


def _signing_key(published: dict[str, Any]) -> _NamedKey | None:
    """A published key; None: it signs nothing, or is of a kind that is not known here (RFC 7517, 5)."""
    try:
        if published.get("use", "sig") != "sig" or published["kty"] == "oct":
            return None
        return published.get("kid"), import_key(published)
    except (JoseError, ValueError, KeyError, TypeError, AttributeError):
        return None
