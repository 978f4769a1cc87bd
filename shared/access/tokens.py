"""Access tokens: issue, authenticate, revoke."""

import hmac
import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime

from ttmark.shared.access import token_records
from ttmark.shared.access.recent_tokens import RecentTokens
from ttmark.shared.access.scopes import Principal, Scope, TokenUse
from ttmark.shared.access.token_limits import DEFAULT_RATES, TokenLimits, checked_rates
from ttmark.shared.vault.audit_events import AuditEvent, AuditSink, no_audit
from ttmark.shared.vault.envelope import Envelope
from ttmark.shared.vault.kek import KeyWrapper
from ttmark.shared.vault.key_store_errors import ExpiredToken, InvalidToken
from ttmark.shared.vault.ledger import Ledger
from ttmark.shared.vault.names import check_name
from ttmark.shared.vault.store import RecordStore
from ttmark.shared.vault.vault import Vault

__all__ = ["Principal", "Scope", "TokenRegistry"]

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
        rates: Collection[float] = DEFAULT_RATES,
        uses: Collection[TokenUse] = (),
    ) -> tuple[str, token_records.TokenInfo]:
        """A new token: its plain text, which is shown this once, and what is kept of it.

        Raises:
            ValueError: no scopes, an expiry without a time zone, or rates that no token may have.
        """
        check_name("tenant", tenant)
        if not scopes:
            raise ValueError("a token needs at least one scope")
        if expires_at is not None and expires_at.tzinfo is None:
            raise ValueError("expires_at needs a time zone")
        token_id, secret = token_records.new_token()
        record = token_records.TokenRecord(
            token_id=token_id,
            tenant=tenant,
            scopes=frozenset(scopes),
            label=label,
            created_at=self._now(),
            expires_at=expires_at,
            secret_sha256=token_records.hash_secret(secret),
            limits=limits or TokenLimits(),
            rates=checked_rates(rates),
            uses=frozenset(uses),
        )
        await self._vault.write(token_records.KIND, token_id, token_records.dump_token(record), previous=None)
        self._audit(AuditEvent("token.create", token_id=token_id, tenant=tenant))
        return token_records.plain_text(token_id, secret), record.shown()

    async def authenticate(self, plain: str) -> Principal:
        """Who sends this token.

        Raises:
            InvalidToken: malformed, unknown, wrong or revoked.
            ExpiredToken: its time is over.
            StoreUnavailable: the store is away and the token was not seen lately.
            RecordRolledBack: the store lost records, so that an unknown token may have been valid.
        """
        token_id, secret = token_records.parse_token(plain)
        record = await self._recent.get(token_id)
        expected = record.secret_sha256 if record else _NO_SECRET
        matches = hmac.compare_digest(token_records.hash_secret(secret), expected)
        if record is None or not matches or record.revoked_at is not None:
            reason = "revoked" if record is not None and matches else "unknown or wrong"
            self._audit(AuditEvent("token.refuse", token_id=token_id, reason=reason))
            raise InvalidToken("the access token is not valid")
        return self._unexpired(record)

    async def current(self, token_id: str) -> Principal:
        """Who has the token of this id, for work that goes on after the request that began it.

        Raises:
            InvalidToken: there is none, or it is revoked.
            ExpiredToken: its time is over.
            StoreUnavailable, RecordRolledBack: as `authenticate`.
        """
        record = await self._recent.get(token_id)
        if record is None or record.revoked_at is not None:
            self._audit(AuditEvent("token.refuse", token_id=token_id, reason="unknown or revoked"))
            raise InvalidToken("the access token is not valid")
        return self._unexpired(record)

    def _unexpired(self, record: token_records.TokenRecord) -> Principal:
        if record.expires_at is not None and record.expires_at <= self._now():
            event = AuditEvent(
                "token.refuse", token_id=record.token_id, tenant=record.tenant, reason="expired"
            )
            self._audit(event)
            raise ExpiredToken("the access token has expired")
        return Principal(
            record.token_id, record.tenant, record.scopes, record.limits, record.rates, record.uses
        )

    async def list(self, *, tenant: str | None = None) -> list[token_records.TokenInfo]:
        """All tokens, or those of one tenant, oldest first; no hashes."""
        envelopes, problems = await self._vault.read_all(token_records.KIND)
        for problem in problems.values():
            raise problem
        records = map(token_records.load_token, envelopes.values())
        oldest_first = sorted(records, key=lambda record: (record.created_at, record.token_id))
        return [record.shown() for record in oldest_first if tenant in (None, record.tenant)]

    async def revoke(self, token_id: str) -> token_records.TokenInfo:
        """The token opens nothing from now on. Repeating it changes nothing.

        Raises:
            InvalidToken: there is no such token.
        """

        def revoked(envelope: Envelope) -> Mapping[str, object] | None:
            record = token_records.load_token(envelope)
            if record.revoked_at is not None:
                return None
            return token_records.dump_token(record.model_copy(update={"revoked_at": self._now()}))

        envelope, changed = await self._vault.change(token_records.KIND, token_id, revoked)
        if envelope is None:
            raise InvalidToken(f"there is no token {token_id}")
        record = token_records.load_token(envelope)
        if changed:
            self._recent.forget(token_id)
            self._audit(AuditEvent("token.revoke", token_id=token_id, tenant=record.tenant))
        return record.shown()

    async def rewrap(self) -> int:
        """Wraps the tokens' data keys under the current key-encryption key; how many were changed."""
        return await self._vault.rewrap(token_records.KIND)
