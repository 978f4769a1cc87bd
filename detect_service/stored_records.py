"""What jobs, cases and the queue share: stores that may be away, entries that expire, audit events."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import structlog

from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.service_errors import StoreDown
from ttmark.shared.vault.audit_events import Action, AuditEvent
from ttmark.shared.vault.key_store_errors import KeyStoreError

_EXPIRE_SECONDS = 30.0


@contextmanager
def store_of(what: str) -> Iterator[None]:
    """Around what a store is asked, or what opens a record.

    Raises:
        StoreDown: the store is away, or the record was sealed under a key that is not at hand.
    """
    try:
        yield
    except KeyStoreError:
        raise StoreDown(f"{what} cannot be reached at the moment.", retry_after=1) from None


async def keep_expiring(expire: Callable[[], Awaitable[None]], logger: str, event: str) -> NoReturn:
    """Goes on forgetting what is over, until it is cancelled; failures are logged under `event`."""
    while True:
        try:
            await expire()
        except Exception as error:
            structlog.get_logger(logger).warning(event, error=type(error).__name__)
        await asyncio.sleep(_EXPIRE_SECONDS)


def event_of(
    caller: Principal,
    request_id: str,
    action: Action,
    *,
    job_id: str | None = None,
    case_id: str | None = None,
    item_id: str | None = None,
    state: str | None = None,
) -> AuditEvent:
    """What a caller did, for the audit trail."""
    return AuditEvent(
        action,
        token_id=caller.token_id,
        tenant=caller.tenant,
        request_id=request_id,
        job_id=job_id,
        case_id=case_id,
        item_id=item_id,
        state=state,
    )
