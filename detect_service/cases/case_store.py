"""What a store of cases does: it keeps sealed cases of tenants, within limits, until their time is over."""

from dataclasses import dataclass
from typing import Protocol

from ttmark.detect_service.once.request_keys import RequestKeys


class TenantStoreFull(Exception):
    """The tenant's cases would take more room than a tenant may."""


class CaseStoreFull(Exception):
    """All cases would take more room than they may."""


@dataclass(frozen=True, slots=True)
class KeptCase:
    """A case as it lies in the store.

    Attributes:
        sealed: the case, who stored it, and when.
        expires_at: Unix time from which it may be forgotten.
    """

    case_id: str
    tenant: str
    sealed: bytes
    expires_at: float


@dataclass(frozen=True, slots=True)
class CaseRoom:
    """Bytes that sealed cases may take, over all replicas.

    Attributes:
        of_tenant: of one tenant's cases.
        of_all: of those of all tenants.
    """

    of_tenant: int
    of_all: int


class CaseStore(Protocol):
    """Every method raises StoreUnavailable when the store does not answer in time.

    Attributes:
        keys: idempotency keys of requests to keep a case.
    """

    keys: RequestKeys

    async def keep(self, case: KeptCase, room: CaseRoom) -> None:
        """Keeps a case. Repeating it changes nothing.

        Raises:
            TenantStoreFull, CaseStoreFull: it was not kept.
        """

    async def get(self, tenant: str, case_id: str) -> KeptCase | None:
        """The tenant's case, or None."""

    async def delete(self, tenant: str, case_id: str) -> bool:
        """Forgets a case of the tenant; whether there was one."""

    async def expire(self, now: float) -> int:
        """Forgets the cases whose time has come; how many."""

    async def close(self) -> None:
        """Gives up connections and files."""
