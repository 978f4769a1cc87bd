"""Sign-in by a company's OpenID provider: its JWT access tokens (RFC 9068) open what tokens of ours do."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import structlog
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.vault.key_store_errors import ExpiredToken, InvalidToken, StoreUnavailable

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures that the provider alone can make. None is by a secret that we would hold as well."""

LEEWAY_SECONDS = 30
KEYS_FRESH_SECONDS = 600.0
KEYS_LAST_SECONDS = 3_600.0
RETRY_SECONDS = 10.0
_MOST_BYTES = 1 << 20

Authenticate = Callable[[str], Awaitable[Principal]]


@dataclass(frozen=True, slots=True)
class OidcRules:
    """Whose tokens are taken, and what they open.

    Attributes:
        issuer: the provider's identifier, as `iss` in its tokens, without a slash more or less.
        audience: what `aud` in a token for this service is, or holds.
        tenant: whose keys are looked for.
        scopes: what everybody may do whom the provider gives such a token.
        evidence_group: members of this group, by the claim `groups`, also see evidence; None: nobody does
            beyond `scopes`.
    """

    issuer: str
    audience: str
    tenant: str
    scopes: frozenset[Scope]
    evidence_group: str | None = None


class OidcTokens:
    """Checks the tokens of one provider with the keys that it publishes.

    The keys are read again every ten minutes, and where a token names one that is not known, but never twice
    in ten seconds; while the provider is away they last for an hour. Nobody is asked about a token: it opens
    until it expires.

    Args:
        client: for the provider; the caller closes it.
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
        self._claims = jwt.JWTClaimsRegistry(
            now=lambda: int(now()),
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": rules.issuer},
            aud={"essential": True, "value": rules.audience},
            sub={"essential": True},
            exp={"essential": True},
        )
        self._keys: KeySet | None = None
        self._read_at = self._tried_at = float("-inf")
        self._reading = asyncio.Lock()
        self._log = structlog.get_logger("ttmark.auth")

    def beside(self, ours: Authenticate) -> Authenticate:
        """Takes a token of three parts as the provider's, any other as one of ours."""

        async def either(token: str) -> Principal:
            return await (self.authenticate if token.count(".") == 2 else ours)(token)

        return either

    async def authenticate(self, token: str) -> Principal:
        """Who bears the token.

        Raises:
            ExpiredToken: its time is over.
            InvalidToken: it is forged, malformed, or for another service.
            StoreUnavailable: the provider's keys are not at hand.
        """
        try:
            try:
                claims = _verified(token, await self._fresh_keys(KEYS_FRESH_SECONDS))
            except InvalidKeyIdError:
                claims = _verified(token, await self._fresh_keys(0.0))
        except (JoseError, ValueError, TypeError) as error:
            raise InvalidToken from error
        try:
            self._claims.validate(claims)
        except JoseError as error:
            raise (ExpiredToken if error.error == "expired_token" else InvalidToken) from error
        return self._principal(claims)

    def _principal(self, claims: dict[str, Any]) -> Principal:
        rules, groups = self._rules, claims.get("groups")
        member = isinstance(groups, list) and rules.evidence_group in groups
        person = hashlib.sha256(f"{rules.issuer}\0{claims['sub']}".encode()).hexdigest()[:24]
        more = {Scope.DETECT_EVIDENCE} if member and rules.evidence_group is not None else set()
        return Principal(f"oidc-{person}", rules.tenant, rules.scopes | more)

    async def _fresh_keys(self, seconds: float) -> KeySet:
        """The provider's keys, at most so many seconds old where it can be reached."""
        async with self._reading:  # of many requests one reads for all
            now = self._monotonic()
            if now - self._read_at >= seconds and now - self._tried_at >= RETRY_SECONDS:
                self._tried_at = now
                try:
                    self._keys, self._read_at = await self._published(), now
                except (httpx.HTTPError, JoseError, ValueError, KeyError, TypeError) as error:
                    self._log.warning("oidc_keys_not_read", error=type(error).__name__)
            if self._keys is None or now - self._read_at >= KEYS_LAST_SECONDS:
                raise StoreUnavailable("the OpenID provider's keys cannot be read")
            return self._keys

    async def _published(self) -> KeySet:
        issuer = self._rules.issuer
        about = await self._document(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if about["issuer"] != issuer:
            raise ValueError("the provider calls itself otherwise")
        published = await self._document(about["jwks_uri"])
        signing = [one for one in published["keys"] if one.get("use", "sig") == "sig" and one["kty"] != "oct"]
        return KeySet.import_key_set({"keys": signing})

    async def _document(self, url: str) -> Any:
        if urlsplit(url).scheme != urlsplit(self._rules.issuer).scheme:
            raise ValueError("the provider's keys are not read over http where it is https itself")
        response = (await self._client.get(url)).raise_for_status()
        if len(response.content) > _MOST_BYTES:
            raise ValueError("the provider's answer is too large")
        return response.json()


def _verified(token: str, keys: KeySet) -> dict[str, Any]:
    """The claims of a token that one of the keys signed."""
    return jwt.decode(token, keys, algorithms=list(ALGORITHMS)).claims
