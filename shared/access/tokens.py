"""Access tokens: issued, stored, authenticated, revoked.

Tokens seen lately are remembered, so that a request costs no store round trip and an outage locks nobody out.
"""

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ttmark.shared.access.scopes import DEFAULT_RATES, Principal, Scope, TokenLimits, TokenUse, checked_rates
from ttmark.shared.events import Event, EventSink, drop_event
from ttmark.shared.vault.envelope import Envelope
from ttmark.shared.vault.kek import KeyWrapper
from ttmark.shared.vault.ledger import Ledger
from ttmark.shared.vault.names import Name, check_name
from ttmark.shared.vault.outage import Outage
from ttmark.shared.vault.stores.key_store_errors import (
    ExpiredToken,
    InvalidToken,
    RecordRolledBack,
    RecordTampered,
    StoreUnavailable,
)
from ttmark.shared.vault.stores.store import RecordStore
from ttmark.shared.vault.vault import Vault

KIND = "token"

_WITHDRAWN = frozenset({"generate:bias"})  # records of earlier releases have it
_TOKEN = re.compile(r"ttm_([0-9a-f]{16})_([0-9a-f]{64})")


class TokenInfo(BaseModel):
    """What is shown of a token: everything but its hash."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token_id: str
    tenant: Name
    scopes: Annotated[frozenset[Scope], BeforeValidator(lambda scopes: frozenset(scopes) - _WITHDRAWN)]
    label: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None = None
    limits: TokenLimits = Field(default_factory=TokenLimits)
    rates: Annotated[tuple[float, ...], AfterValidator(checked_rates)] = DEFAULT_RATES
    uses: frozenset[TokenUse] = frozenset()


class TokenRecord(TokenInfo):
    """The body of a token's record; the secret has 256 random bits, so a plain hash of it tells nothing."""

    secret_sha256: str

    def shown(self) -> TokenInfo:
        return TokenInfo.model_validate(self.model_dump(exclude={"secret_sha256"}))


def load_token(envelope: Envelope) -> TokenRecord:
    """The token's record in an opened envelope.

    Raises:
        RecordTampered: the body, although authentic, is not one that this version of the program writes.
    """
    try:
        return TokenRecord.model_validate(envelope.body)
    except ValidationError as error:
        raise RecordTampered("the record of a token has another format than this program writes") from error


def dump_token(record: TokenRecord) -> dict[str, object]:
    body = {**record.model_dump(mode="json"), "scopes": sorted(record.scopes), "uses": sorted(record.uses)}
    if record.rates == DEFAULT_RATES:
        del body["rates"]  # a replica of the version before, which knows no rates, reads such a token too
    if not record.uses:
        del body["uses"]  # likewise
    return body


def new_token() -> tuple[str, str]:
    return secrets.token_hex(8), secrets.token_hex(32)


def plain_text(token_id: str, secret: str) -> str:
    return f"ttm_{token_id}_{secret}"


def parse_token(plain: str) -> tuple[str, str]:
    """Token id and secret.

    Raises:
        InvalidToken: it has not the form of a token; the message does not repeat it.
    """
    match = _TOKEN.fullmatch(plain)
    if match is None:
        raise InvalidToken("not an access token")
    return match[1], match[2]


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


_NO_SECRET = "0" * 64


class TokenRegistry:
    """Tokens over any record store.

    `authenticate` asks the store about a token at most every `fresh_seconds`, so a revocation takes
    effect everywhere within that time. While the store is away, tokens seen within `outage_seconds` go on
    working, and nobody waits for it. So does a token whose record went back in time in the store: what was
    seen is the later one. Of requests with one token at the same time, one reads for all.
    """

    def __init__(
        self,
        store: RecordStore,
        kek: KeyWrapper,
        *,
        fresh_seconds: float = 2.0,
        outage_seconds: float = 900.0,
        ledger: Ledger | None = None,
        audit: EventSink = drop_event,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._vault = Vault(store, kek, ledger)
        self._fresh_seconds = fresh_seconds
        self._outage_seconds = outage_seconds
        self._audit = audit
        self._now = now
        self._monotonic = monotonic
        self._known: dict[str, tuple[TokenRecord, float]] = {}
        self._reading: dict[str, asyncio.Lock] = {}
        self._outage = Outage(store.ping)

    async def create(
        self,
        *,
        tenant: str,
        scopes: Collection[Scope],
        expires_at: datetime | None = None,
        label: str = "",
        limits: TokenLimits | None = None,
        rates: Collection[float] = DEFAULT_RATES,
        uses: Collection[TokenUse] = (),
    ) -> tuple[str, TokenInfo]:
        """A new token: its plain text, which is shown this once, and what is kept of it.

        Raises:
            ValueError: no scopes, an expiry without a time zone, or rates that no token may have.
        """
        check_name("tenant", tenant)
        if not scopes:
            raise ValueError("a token needs at least one scope")
        if expires_at is not None and expires_at.tzinfo is None:
            raise ValueError("expires_at needs a time zone")
        token_id, secret = new_token()
        record = TokenRecord(
            token_id=token_id,
            tenant=tenant,
            scopes=frozenset(scopes),
            label=label,
            created_at=self._now(),
            expires_at=expires_at,
            secret_sha256=hash_secret(secret),
            limits=limits or TokenLimits(),
            rates=checked_rates(rates),
            uses=frozenset(uses),
        )
        await self._vault.write(KIND, token_id, dump_token(record), previous=None)
        self._audit(Event("token.create", token_id=token_id, tenant=tenant))
        return plain_text(token_id, secret), record.shown()

    async def authenticate(self, plain: str) -> Principal:
        """Who sends this token.

        Raises:
            InvalidToken: malformed, unknown, wrong or revoked.
            ExpiredToken: its time is over.
            StoreUnavailable: the store is away and the token was not seen lately.
            RecordRolledBack: the store lost records, so that an unknown token may have been valid.
        """
        token_id, secret = parse_token(plain)
        record = await self._recent(token_id)
        expected = record.secret_sha256 if record else _NO_SECRET
        matches = hmac.compare_digest(hash_secret(secret), expected)
        if record is None or not matches or record.revoked_at is not None:
            reason = "revoked" if record is not None and matches else "unknown or wrong"
            self._audit(Event("token.refuse", token_id=token_id, reason=reason))
            raise InvalidToken("the access token is not valid")
        return self._unexpired(record)

    async def current(self, token_id: str) -> Principal:
        """Who has the token of this id, for work that goes on after the request that began it.

        Raises:
            InvalidToken: there is none, or it is revoked.
            ExpiredToken: its time is over.
            StoreUnavailable, RecordRolledBack: as `authenticate`.
        """
        record = await self._recent(token_id)
        if record is None or record.revoked_at is not None:
            self._audit(Event("token.refuse", token_id=token_id, reason="unknown or revoked"))
            raise InvalidToken("the access token is not valid")
        return self._unexpired(record)

    def _unexpired(self, record: TokenRecord) -> Principal:
        if record.expires_at is not None and record.expires_at <= self._now():
            event = Event("token.refuse", token_id=record.token_id, tenant=record.tenant, reason="expired")
            self._audit(event)
            raise ExpiredToken("the access token has expired")
        return Principal(
            record.token_id, record.tenant, record.scopes, record.limits, record.rates, record.uses
        )

    async def list(self, *, tenant: str | None = None) -> list[TokenInfo]:
        """All tokens, or those of one tenant, oldest first; no hashes."""
        envelopes, problems = await self._vault.read_all(KIND)
        for problem in problems.values():
            raise problem
        records = map(load_token, envelopes.values())
        oldest_first = sorted(records, key=lambda record: (record.created_at, record.token_id))
        return [record.shown() for record in oldest_first if tenant in (None, record.tenant)]

    async def revoke(self, token_id: str) -> TokenInfo:
        """The token opens nothing from now on. Repeating it changes nothing.

        Raises:
            InvalidToken: there is no such token.
        """

        def revoked(envelope: Envelope) -> Mapping[str, object] | None:
            record = load_token(envelope)
            if record.revoked_at is not None:
                return None
            return dump_token(record.model_copy(update={"revoked_at": self._now()}))

        envelope, changed = await self._vault.change(KIND, token_id, revoked)
        if envelope is None:
            raise InvalidToken(f"there is no token {token_id}")
        record = load_token(envelope)
        if changed:
            self._known.pop(token_id, None)
            self._audit(Event("token.revoke", token_id=token_id, tenant=record.tenant))
        return record.shown()

    async def rewrap(self) -> int:
        """Wraps the tokens' data keys under the current key-encryption key; how many were changed."""
        return await self._vault.rewrap(KIND)

    def close(self) -> None:
        self._outage.close()

    async def _recent(self, token_id: str) -> TokenRecord | None:
        """The record, read at most every `fresh_seconds`; None where there is no such token.

        Raises:
            StoreUnavailable: the store is away and the token was not seen lately; or it is empty.
            RecordRolledBack: there is no such token, nor a record that the store had before.
            RecordTampered: the record was altered.
        """
        record = self._usable(token_id)
        if record is not None:
            return record
        lock = self._reading.setdefault(token_id, asyncio.Lock())
        try:
            async with lock:
                return self._usable(token_id) or await self._read(token_id)
        finally:
            if not lock.locked():
                self._reading.pop(token_id, None)

    def _usable(self, token_id: str) -> TokenRecord | None:
        record = self._seen(token_id, self._fresh_seconds)
        if record is None and self._outage.doubtful:
            record = self._seen(token_id, self._outage_seconds)
        return record

    def _seen(self, token_id: str, seconds: float) -> TokenRecord | None:
        record, checked_at = self._known.get(token_id, (None, 0.0))
        return record if self._monotonic() - checked_at <= seconds else None

    async def _read(self, token_id: str) -> TokenRecord | None:
        if self._outage.away:
            raise StoreUnavailable("the key store did not answer a moment ago")
        try:
            envelope = await self._vault.read(KIND, token_id)
        except (StoreUnavailable, RecordRolledBack) as error:
            if isinstance(error, StoreUnavailable):
                self._outage.look()
            record = self._seen(token_id, self._outage_seconds)
            if record is None:
                raise
            return record
        except RecordTampered:
            self._known.pop(token_id, None)
            raise
        if envelope is None:
            await self._vault.check_kept()
            return None
        record = load_token(envelope)
        self._known[token_id] = record, self._monotonic()
        return record
