"""Access tokens: issue, authenticate, revoke."""

import asyncio
import hmac
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ValidationError

from shared.keys.envelope import Envelope
from shared.keys.errors import (
    ExpiredToken,
    InvalidToken,
    RecordTampered,
    RevisionConflict,
    StoreUnavailable,
)
from shared.keys.kek import KeyWrapper
from shared.keys.ledger import Ledger
from shared.keys.records import check_name
from shared.keys.scopes import Principal, Scope
from shared.keys.store import RecordStore
from shared.keys.token_records import TokenInfo, TokenRecord, hash_secret, new_token, parse_token, plain_text
from shared.keys.vault import Vault

__all__ = ["Principal", "Scope", "TokenRegistry"]

KIND = "token"
_ATTEMPTS = 8
_NO_SECRET = "0" * 64


@dataclass(frozen=True, slots=True)
class _Known:
    record: TokenRecord
    checked_at: float


class TokenRegistry:
    """Tokens over any record store.

    `authenticate` asks the store about a token at most every `fresh_seconds`, so a revocation takes
    effect everywhere within that time. While the store is away, tokens seen within
    `outage_seconds` go on working and the store is tried at most every `fresh_seconds`.
    """

    def __init__(
        self,
        store: RecordStore,
        kek: KeyWrapper,
        *,
        fresh_seconds: float = 2.0,
        outage_seconds: float = 900.0,
        ledger: Ledger | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._vault = Vault(store, kek, ledger)
        self._fresh_seconds = fresh_seconds
        self._outage_seconds = outage_seconds
        self._now = now
        self._monotonic = monotonic
        self._known: dict[str, _Known] = {}
        self._reading: dict[str, asyncio.Lock] = {}
        self._retry_at = 0.0

    async def create(
        self, *, tenant: str, scopes: Collection[Scope], expires_at: datetime | None = None, label: str = ""
    ) -> tuple[str, TokenInfo]:
        """A new token: its plain text, which is shown this once, and what is kept of it.

        Raises:
            ValueError: no scopes, or an expiry without a time zone.
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
        )
        await self._vault.write(KIND, token_id, _dump(record), previous=None)
        return plain_text(token_id, secret), record.shown()

    async def authenticate(self, plain: str) -> Principal:
        """Who sends this token.

        Raises:
            InvalidToken: malformed, unknown, wrong or revoked.
            ExpiredToken: its time is over.
            StoreUnavailable: the store is away and the token was not seen lately.
        """
        token_id, secret = parse_token(plain)
        record = await self._lookup(token_id)
        expected = record.secret_sha256 if record else _NO_SECRET
        matches = hmac.compare_digest(hash_secret(secret), expected)
        if record is None or not matches or record.revoked_at is not None:
            raise InvalidToken("the access token is not valid")
        if record.expires_at is not None and record.expires_at <= self._now():
            raise ExpiredToken("the access token has expired")
        return Principal(token_id, record.tenant, record.scopes)

    async def list(self, *, tenant: str | None = None) -> list[TokenInfo]:
        """All tokens, or those of one tenant, oldest first; no hashes."""
        envelopes, problems = await self._vault.read_all(KIND)
        for problem in problems.values():
            raise problem
        records = sorted(
            map(_load, envelopes.values()), key=lambda record: (record.created_at, record.token_id)
        )
        return [record.shown() for record in records if tenant in (None, record.tenant)]

    async def revoke(self, token_id: str) -> TokenInfo:
        """The token opens nothing from now on. Repeating it changes nothing.

        Raises:
            InvalidToken: there is no such token.
        """
        for _ in range(_ATTEMPTS):
            envelope = await self._vault.read(KIND, token_id)
            if envelope is None:
                raise InvalidToken(f"there is no token {token_id}")
            record = _load(envelope)
            if record.revoked_at is not None:
                return record.shown()
            record = record.model_copy(update={"revoked_at": self._now()})
            try:
                await self._vault.write(KIND, token_id, _dump(record), previous=envelope)
            except RevisionConflict:
                continue
            self._known.pop(token_id, None)
            return record.shown()
        raise RevisionConflict(f"token {token_id} keeps changing")

    async def _lookup(self, token_id: str) -> TokenRecord | None:
        known = self._fresh(token_id)
        if known is not None:
            return known.record
        lock = self._reading.setdefault(token_id, asyncio.Lock())
        try:
            async with lock:
                known = self._fresh(token_id)
                return known.record if known else await self._read(token_id)
        finally:
            if not lock.locked():
                self._reading.pop(token_id, None)

    def _fresh(self, token_id: str) -> _Known | None:
        known = self._known.get(token_id)
        if known is None:
            return None
        age = self._monotonic() - known.checked_at
        store_is_away = self._monotonic() < self._retry_at
        return known if age <= (self._outage_seconds if store_is_away else self._fresh_seconds) else None

    async def _read(self, token_id: str) -> TokenRecord | None:
        try:
            envelope = await self._vault.read(KIND, token_id)
        except StoreUnavailable:
            self._retry_at = self._monotonic() + self._fresh_seconds
            known = self._fresh(token_id)
            if known is None:
                raise
            return known.record
        except RecordTampered:
            self._known.pop(token_id, None)
            raise
        if envelope is None:
            self._known.pop(token_id, None)
            return None
        record = _load(envelope)
        self._known[token_id] = _Known(record, self._monotonic())
        return record


def _load(envelope: Envelope) -> TokenRecord:
    try:
        return TokenRecord.model_validate(envelope.body)
    except ValidationError as error:
        raise RecordTampered("the record of a token has another format than this program writes") from error


def _dump(record: TokenRecord) -> dict[str, object]:
    body = record.model_dump(mode="json")
    return {**body, "scopes": sorted(record.scopes)}
