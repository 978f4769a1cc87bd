"""What callers do with the queue: items are added, shown to whom they concern, changed and forgotten."""

import hashlib
import time
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict

from ttmark.detect_service.queue.queue_store import KeptItem, QueueFull, QueueStore
from ttmark.detect_service.stored_records import event_of, keep_expiring, store_of
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.service_errors import Conflict, Forbidden, NotFound, TooManyRequests
from ttmark.shared.schemas.review_queue import (
    QueueChange,
    QueueEntry,
    QueueItem,
    QueuePage,
    QueueState,
    QueueStep,
)
from ttmark.shared.vault.audit_events import AuditSink
from ttmark.shared.vault.envelope import open_record, seal_record
from ttmark.shared.vault.kek import KeyWrapper

_DAY_SECONDS = 86_400.0
_FULL_RETRY_SECONDS = 60.0
_MOST_STEPS = 20


class ChangedMeanwhile(Conflict):
    """Another version of the item is there, which `present` is."""

    def __init__(self, present: QueueItem) -> None:
        last = present.steps[-1]
        super().__init__(
            f"The item was changed meanwhile: it is {present.state.replace('_', ' ')} now, by token "
            f"{last.token_id}, in version {present.version}. Nothing was written."
        )
        self.present = present


@dataclass(frozen=True, slots=True)
class KeptQueue:
    """Given by the composition root where there is a queue.

    Attributes:
        secret: names items by what their documents hold, so that whoever reads the store cannot guess at it.
        keep_days: how long an item is kept that nobody changes.
        items: most of one tenant.
    """

    store: QueueStore
    kek: KeyWrapper
    secret: bytes
    keep_days: float
    items: int


class _Content(BaseModel):
    model_config = ConfigDict(frozen=True)

    added_by: str
    entry: QueueEntry
    steps: tuple[QueueStep, ...]


@dataclass(frozen=True, slots=True)
class QueueService:
    """Shows items to whom they concern, and changes each on what was before."""

    kept: KeptQueue
    audit: AuditSink

    async def add(self, entry: QueueEntry, caller: Principal, request_id: str) -> tuple[QueueItem, bool]:
        """The item of a document, and whether it is new: one that is there stays as it is.

        Raises:
            TooManyRequests: there is no room.
            Conflict: another token of the tenant added it, which the caller may not see.
            StoreDown: the store is away.
        """
        now = time.time()
        if not caller.sees_evidence:
            entry = entry.model_copy(update={"log10_p": None})
        step = QueueStep(state="new", token_id=caller.token_id, at=now, note=entry.note)
        content = _Content(added_by=caller.token_id, entry=entry, steps=(step,))
        item_id = self._id(caller.tenant, entry)
        item = KeptItem(item_id, caller.tenant, "new", 1, b"", now, self._end())
        try:
            with store_of("The queue"):
                added = await self.kept.store.add(await self._sealed(item, content), self.kept.items)
        except QueueFull:
            raise TooManyRequests(
                f"The tenant's queue may have {self.kept.items} items. Delete some that are decided.",
                retry_after=_FULL_RETRY_SECONDS,
            ) from None
        if added:
            self.audit(event_of(caller, request_id, "queue.add", item_id=item_id, state="new"))
            return _shown(item, content), True
        try:
            return await self.read(item_id, caller), False
        except NotFound:
            raise Conflict("Another token added this document to the queue.") from None

    async def read(self, item_id: str, caller: Principal) -> QueueItem:
        """An item that the caller may see: one that it added, and with `detect:evidence` its tenant's.

        Raises:
            NotFound: there is none.
            StoreDown: the store is away.
        """
        return _shown(*await self._opened(item_id, caller))

    async def page(self, caller: Principal, state: QueueState | None, offset: int, limit: int) -> QueuePage:
        """Items of the tenant.

        Raises:
            Forbidden: the caller lacks `detect:evidence`.
            StoreDown: the store is away.
        """
        if not caller.sees_evidence:
            raise Forbidden("The queue is shown to tokens with the scope detect:evidence.")
        with store_of("The queue"):
            listed = await self.kept.store.listed(caller.tenant, state, offset, limit)
            now = time.time()
            items = [_shown(kept, await self._open(kept)) for kept in listed if kept.expires_at > now]
        return QueuePage(items=items, next_offset=offset + limit if len(listed) == limit else None)

    async def change(self, change: QueueChange, caller: Principal, request_id: str) -> QueueItem:
        """The item after the change. Raises as `read`, and

        Raises:
            ChangedMeanwhile: the item has another version than the change is of.
        """
        kept, content = await self._opened(change.id, caller)
        if kept.version != change.version:
            raise ChangedMeanwhile(_shown(kept, content))
        step = QueueStep(state=change.state, token_id=caller.token_id, at=time.time(), note=change.note)
        content = content.model_copy(update={"steps": (*content.steps, step)[-_MOST_STEPS:]})
        new = replace(kept, state=change.state, version=kept.version + 1, expires_at=self._end())
        with store_of("The queue"):
            written = await self.kept.store.replace(await self._sealed(new, content))
        if not written:
            raise ChangedMeanwhile(await self.read(change.id, caller))
        self.audit(event_of(caller, request_id, "queue.change", item_id=change.id, state=change.state))
        return _shown(new, content)

    async def delete(self, item_id: str, caller: Principal, request_id: str) -> None:
        """Forgets an item that the caller added. Raises as `read`, and

        Raises:
            Forbidden: another token of the tenant added it.
        """
        kept, content = await self._opened(item_id, caller)
        if not _added(content, caller):
            raise Forbidden("Another token added this item: its bearer can delete it.")
        with store_of("The queue"):
            await self.kept.store.delete(caller.tenant, item_id)
        self.audit(event_of(caller, request_id, "queue.delete", item_id=item_id, state=kept.state))

    async def expire(self) -> None:
        await keep_expiring(self._expire, "ttmark.queue", "queue_upkeep_failed")

    async def _expire(self) -> None:
        await self.kept.store.expire(time.time())

    async def _opened(self, item_id: str, caller: Principal) -> tuple[KeptItem, _Content]:
        with store_of("The queue"):
            kept = await self.kept.store.get(caller.tenant, item_id)
            if kept is None or kept.expires_at <= time.time():
                raise NotFound("There is no such item in the queue.")
            content = await self._open(kept)
        if not caller.sees_evidence and not _added(content, caller):
            raise NotFound("There is no such item in the queue.")
        return kept, content

    async def _open(self, kept: KeptItem) -> _Content:
        plain, _ = await open_record(self.kept.kek, _name(kept), kept.sealed)
        return _Content.model_validate_json(plain)

    async def _sealed(self, item: KeptItem, content: _Content) -> KeptItem:
        sealed, _ = await seal_record(self.kept.kek, _name(item), content.model_dump_json().encode())
        return replace(item, sealed=sealed)

    def _id(self, tenant: str, entry: QueueEntry) -> str:
        named = f"{tenant} {entry.document.content} {entry.document.sha256}"
        return hashlib.blake2b(named.encode(), key=self.kept.secret, digest_size=16).hexdigest()

    def _end(self) -> float:
        return time.time() + self.kept.keep_days * _DAY_SECONDS


def _added(content: _Content, caller: Principal) -> bool:
    return content.added_by == caller.token_id


def _shown(kept: KeptItem, content: _Content) -> QueueItem:
    entry = content.entry
    return QueueItem(
        id=kept.item_id,
        version=kept.version,
        state=kept.state,
        name=entry.name,
        document=entry.document,
        verdict=entry.verdict,
        log10_p=entry.log10_p,
        case_id=entry.case_id,
        steps=list(content.steps),
        added_at=kept.added_at,
        expires_at=kept.expires_at,
    )


def _name(item: KeptItem) -> bytes:
    """The state and version that stand beside what is sealed are bound to it."""
    return b"ttmark queue %b %b %b %d" % (
        item.tenant.encode(),
        item.item_id.encode(),
        item.state.encode(),
        item.version,
    )
