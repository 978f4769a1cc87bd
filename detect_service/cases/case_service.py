"""What callers do with cases: they are kept for a time, and shown to whom they concern."""

import hashlib
import secrets
import time
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from ttmark.detect_service.cases.case_store import (
    CaseRoom,
    CaseStore,
    CaseStoreFull,
    KeptCase,
    TenantStoreFull,
)
from ttmark.detect_service.idempotency.idempotency import Asked, Once
from ttmark.detect_service.stored_records import event_of, keep_expiring, store_of
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.service_errors import Forbidden, NotFound, TooManyRequests
from ttmark.shared.schemas.cases import CaseText, StoredCase
from ttmark.shared.vault.audit_events import AuditSink
from ttmark.shared.vault.envelope import open_record, seal_record
from ttmark.shared.vault.kek import KeyWrapper

_DAY_SECONDS = 86_400.0
_FULL_RETRY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class KeptCases:
    """Given by the composition root where cases are kept.

    Attributes:
        keep_days: how long each is kept.
        case_bytes: of the largest case, as its file has it.
    """

    store: CaseStore
    kek: KeyWrapper
    keep_days: float
    room: CaseRoom
    case_bytes: int


class _Content(BaseModel):
    """What is sealed. `stored_at` is Unix time."""

    model_config = ConfigDict(frozen=True)

    token_id: str
    stored_at: float
    case: str


@dataclass(frozen=True, slots=True)
class CaseService:
    """Shows cases to whom they concern."""

    kept: KeptCases
    audit: AuditSink

    async def store(self, case: str, caller: Principal, request_id: str, key: str | None) -> StoredCase:
        """Keeps a case that was found to be genuine, under a new id of 128 random bits; once for each `key`.

        Raises:
            IdempotencyKeyReused, RequestInProgress: see `Once`.
            TooManyRequests: there is no room.
            StoreDown: the store is away.
        """
        now = time.time()
        expires_at = now + self.kept.keep_days * _DAY_SECONDS
        fresh = StoredCase(id=secrets.token_hex(16), stored_at=now, expires_at=expires_at)

        async def keep(stored: StoredCase) -> None:
            await self._keep(stored, case, caller)
            self.audit(event_of(caller, request_id, "case.store", case_id=stored.id))

        async def is_there(case_id: str) -> bool:
            return await self._found(caller.tenant, case_id) is not None

        if key is None:
            await keep(fresh)
            return fresh
        asked = Asked(hashlib.sha256(case.encode()).hexdigest(), fresh, _costs_nothing, keep, is_there)
        with store_of("Cases"):
            once = Once(self.kept.store.keys, self.kept.kek)
            return await once.answer(key, caller, asked)

    async def _keep(self, stored: StoredCase, case: str, caller: Principal) -> None:
        content = _Content(token_id=caller.token_id, stored_at=stored.stored_at, case=case)
        name, room = _name(caller.tenant, stored.id), self.kept.room
        try:
            with store_of("Cases"):
                sealed, _ = await seal_record(self.kept.kek, name, content.model_dump_json().encode())
                case_in_store = KeptCase(stored.id, caller.tenant, sealed, stored.expires_at)
                await self.kept.store.keep(case_in_store, room)
        except TenantStoreFull:
            raise TooManyRequests(
                f"The tenant's cases may take {room.of_tenant} bytes, and with this one they would take "
                "more. Delete one that is no longer needed.",
                retry_after=_FULL_RETRY_SECONDS,
            ) from None
        except CaseStoreFull:
            raise TooManyRequests(
                f"All cases together may take {room.of_all} bytes, and with this one they would take more.",
                retry_after=_FULL_RETRY_SECONDS,
            ) from None

    async def read(self, case_id: str, caller: Principal, request_id: str) -> CaseText:
        """A case that the caller may see: one that it stored, and with `detect:evidence` those of its tenant.

        Raises:
            NotFound: there is none.
            StoreDown: the store is away, or the case was sealed under a key that is not at hand.
        """
        kept, content = await self._opened(case_id, caller)
        self.audit(event_of(caller, request_id, "case.read", case_id=case_id))
        return CaseText(
            id=case_id, stored_at=content.stored_at, expires_at=kept.expires_at, case=content.case
        )

    async def delete(self, case_id: str, caller: Principal, request_id: str) -> None:
        """Forgets a case that the caller stored. Raises as `read`, and

        Raises:
            Forbidden: another token of the tenant stored it.
        """
        _, content = await self._opened(case_id, caller)
        if content.token_id != caller.token_id:
            raise Forbidden("Another token stored this case: its bearer or an operator can delete it.")
        with store_of("Cases"):
            await self.kept.store.delete(caller.tenant, case_id)
        self.audit(event_of(caller, request_id, "case.delete", case_id=case_id))

    async def expire(self) -> None:
        """Goes on forgetting cases whose time is over, until it is cancelled."""
        await keep_expiring(self._expire, "ttmark.cases", "case_upkeep_failed")

    async def _expire(self) -> None:
        await self.kept.store.expire(time.time())
        await self.kept.store.keys.expire(time.time())

    async def _found(self, tenant: str, case_id: str) -> KeptCase | None:
        kept = await self.kept.store.get(tenant, case_id)
        return kept if kept is not None and kept.expires_at > time.time() else None

    async def _opened(self, case_id: str, caller: Principal) -> tuple[KeptCase, _Content]:
        with store_of("Cases"):
            kept = await self._found(caller.tenant, case_id)
            if kept is None:
                raise NotFound("There is no such case.")
            plain, _ = await open_record(self.kept.kek, _name(caller.tenant, case_id), kept.sealed)
        content = _Content.model_validate_json(plain)
        if caller.token_id != content.token_id and not caller.sees_evidence:
            raise NotFound("There is no such case.")
        return kept, content


def _name(tenant: str, case_id: str) -> bytes:
    return b"ttmark case %b %b" % (tenant.encode(), case_id.encode())


async def _costs_nothing() -> None:
    """The request itself was counted when it came in."""
