"""Access tokens: issue, authenticate, revoke."""

import hmac
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime

from shared.keys.audit import AuditEvent, AuditSink, no_audit
from shared.keys.errors import (
    ExpiredToken,
    InvalidToken,
    RevisionConflict,
)
from shared.keys.kek import KeyWrapper
from shared.keys.ledger import Ledger
from shared.keys.recent_tokens import RecentTokens
from shared.keys.records import check_name
from shared.keys.scopes import Principal, Scope
from shared.keys.store import RecordStore
from shared.keys.token_limits import TokenLimits
from shared.keys.token_records import (
    KIND,
    TokenInfo,
    TokenRecord,
    dump_token,
    hash_secret,
    load_token,
    new_token,
    parse_token,
    plain_text,
)
from shared.keys.vault import Vault

__all__ = ["Principal", "Scope", "TokenRegistry"]

_ATTEMPTS = 8
_NO_SECRET = "0" * 64


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
        audit: AuditSink = no_audit,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._vault = Vault(store, kek, ledger)
        self._recent = RecentTokens(
            self._vault, fresh_seconds=fresh_seconds, outage_seconds=outage_seconds, monotonic=monotonic
        )
        self._audit = audit
        self._now = now

    async def create(
        self,
        *,
        tenant: str,
        scopes: Collection[Scope],
        expires_at: datetime | None = None,
        label: str = "",
        limits: TokenLimits | None = None,
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
            limits=limits or TokenLimits(),
        )
        await self._vault.write(KIND, token_id, dump_token(record), previous=None)
        self._audit(AuditEvent("token.create", token_id=token_id, tenant=tenant))
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
        record = await self._recent.get(token_id)
        expected = record.secret_sha256 if record else _NO_SECRET
        matches = hmac.compare_digest(hash_secret(secret), expected)
        if record is None or not matches or record.revoked_at is not None:
            reason = "revoked" if record is not None and matches else "unknown or wrong"
            self._audit(AuditEvent("token.refuse", token_id=token_id, reason=reason))
            raise InvalidToken("the access token is not valid")
        if record.expires_at is not None and record.expires_at <= self._now():
            self._audit(AuditEvent("token.refuse", token_id=token_id, tenant=record.tenant, reason="expired"))
            raise ExpiredToken("the access token has expired")
        return Principal(token_id, record.tenant, record.scopes, record.limits)

    async def list(self, *, tenant: str | None = None) -> list[TokenInfo]:
        """All tokens, or those of one tenant, oldest first; no hashes."""
        envelopes, problems = await self._vault.read_all(KIND)
        for problem in problems.values():
            raise problem
        records = sorted(
            map(load_token, envelopes.values()), key=lambda record: (record.created_at, record.token_id)
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
            record = load_token(envelope)
            if record.revoked_at is not None:
                return record.shown()
            record = record.model_copy(update={"revoked_at": self._now()})
            try:
                await self._vault.write(KIND, token_id, dump_token(record), previous=envelope)
            except RevisionConflict:
                continue
            self._recent.forget(token_id)
            self._audit(AuditEvent("token.revoke", token_id=token_id, tenant=record.tenant))
            return record.shown()
        raise RevisionConflict(f"token {token_id} keeps changing")

    async def rewrap(self) -> int:
        """Wraps the tokens' data keys under the current key-encryption key; how many were changed."""
        return await self._vault.rewrap(KIND)
