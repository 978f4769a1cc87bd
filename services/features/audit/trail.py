"""The audit trail of a running process: a sink for events, and heads that follow it into the key store.

The head of a chain is its newest record: an end that was cut off is noticed by it. Beside it lies the newest
record that was removed on purpose, which tells a removed beginning from one that was cut off.
"""

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from importlib.metadata import version
from typing import Any, Self

import structlog
from prometheus_client import CollectorRegistry

from ttmark.services.features.audit.chain import Chain
from ttmark.services.features.audit.record import LOST, START, Anchor, Head
from ttmark.services.features.audit.segments import remove
from ttmark.shared.events import Event
from ttmark.shared.observability.gauges import watch_gauge
from ttmark.shared.observability.logging import redact_text
from ttmark.shared.vault.kek import KeyWrapper
from ttmark.shared.vault.stores.key_store_errors import KeyStoreError
from ttmark.shared.vault.stores.store import RecordStore
from ttmark.shared.vault.vault import Vault

KIND = "audit"
_Body = Mapping[str, Any]


class Heads:
    """Anchors in authenticated records, one for each chain: who has no key-encryption key can make none."""

    def __init__(self, store: RecordStore, kek: KeyWrapper) -> None:
        self._vault = Vault(store, kek)

    async def get(self, chain: str) -> Head | None:
        """The head known of a chain. Raises KeyStoreError: the store is away, or the record was altered."""
        envelope = await self._vault.read(KIND, chain)
        return None if envelope is None else _anchor(chain, envelope.body).head

    async def read_all(self) -> tuple[dict[str, Anchor], dict[str, KeyStoreError]]:
        """What is known by chain, and what is wrong with other records. Raises StoreUnavailable."""
        envelopes, problems = await self._vault.read_all(KIND)
        return {chain: _anchor(chain, envelope.body) for chain, envelope in envelopes.items()}, problems

    async def put(self, head: Head) -> None:
        """Writes the head of a chain that only the caller continues. Raises KeyStoreError."""
        await self._change(head.chain, lambda known: {**known, **_body(head)})

    async def put_removed(self, removed: Head) -> None:
        """Says that a chain's records up to this one may be missing; its writer may go on. As `put`."""

        def new_body(known: _Body) -> _Body | None:
            if known and known.get("removed", {"sequence": 0})["sequence"] >= removed.sequence:
                return None
            return {**(known or _body(removed)), "removed": _body(removed)}

        await self._change(removed.chain, new_body)

    async def _change(self, chain: str, new_body: Callable[[_Body], _Body | None]) -> None:
        """`new_body` gets an empty body where the store has none."""
        envelope, _ = await self._vault.change(KIND, chain, lambda known: new_body(known.body))
        first = None if envelope else new_body({})
        if first is not None:
            await self._vault.write(KIND, chain, first, previous=None)


def _body(head: Head) -> dict[str, Any]:
    return {"sequence": head.sequence, "hash": head.hash}


def _anchor(chain: str, body: object) -> Anchor:
    match body:
        case {"sequence": int(sequence), "hash": str(digest), **more}:
            head = Head(chain, sequence, digest)
            match more.get("removed"):
                case None:
                    return Anchor(head)
                case {"sequence": int(through), "hash": str(of_through)}:
                    return Anchor(head, Head(chain, through, of_through))
    raise KeyStoreError(f"{KIND} {chain}: the stored record has another format than this program writes")


_EVERY_SECONDS = 5.0
_IDENTIFIERS = frozenset({"request_id", "job_id", "token_id"})


class AuditTrail:
    """Appends events to a chain and, as an async context, anchors its head every five seconds.

    Events come from any thread. One that cannot be written (a full disk) is counted and said in the log, and
    the number of such events becomes a record as soon as one can be written again: requests go on. Without
    the store the chain goes on without new heads.

    Args:
        keep: how long segments are kept; None: for good.
    """

    def __init__(
        self, chain: Chain, heads: Heads, *, keep: timedelta | None, every_seconds: float = _EVERY_SECONDS
    ) -> None:
        self._chain = chain
        self._heads = heads
        self._keep = keep
        self._every_seconds = every_seconds
        self._log = structlog.stdlib.get_logger("ttmark.audit")
        self._anchored: tuple[str, int] | None = None
        self._lock = threading.Lock()  # of what follows, as far as `lost`
        self._unwritten = 0
        self._started = False
        self.lost = 0
        self._failing = False
        self._anchoring = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def unanchored(self) -> int:
        head, anchored = self._chain.head, self._anchored
        return head.sequence - (anchored[1] if anchored and anchored[0] == head.chain else 0)

    def write(self, event: Event) -> None:
        """Appends the event. Raises OSError: it cannot be written."""
        with self._lock:
            self._write(event)

    def hear(self, event: Event) -> None:
        with self._lock:
            try:
                self._write(event)
            except OSError as error:
                if not self._unwritten:
                    self._log.error("audit_trail_not_written", reason=str(error.strerror))
                self._unwritten += 1
                self.lost += 1

    def _write(self, event: Event) -> None:
        if not self._started:
            self._chain.append(_start(self._chain.torn_bytes))
            self._started = True
        self._say_lost()
        self._chain.append(_document(event))

    def _say_lost(self) -> None:
        if self._unwritten:
            self._chain.append({"action": LOST, "events": self._unwritten})
            self._unwritten = 0

    async def anchor(self) -> None:
        """Brings the chain to the disk and its head to the store.

        A chain that is not what the store knows of it, because its end was cut off while nobody wrote, is
        left as it is, and so is its head: another chain begins.

        Raises:
            KeyStoreError: the store is away, or its record was altered.
            OSError: the folder cannot be used.
        """
        async with self._anchoring:
            with self._lock:
                self._say_lost()
            if not self.unanchored:
                return
            if self._anchored is None:
                known = await self._heads.get(self._chain.head.chain)
                if known is not None and not await asyncio.to_thread(self._chain.holds, known):
                    self._log.error("audit_chain_broken", chain=known.chain, sequence=known.sequence)
                    self._chain.begin_anew()
            head = await asyncio.to_thread(self._chain.sync)
            await self._heads.put(head)
            self._anchored = head.chain, head.sequence

    def close(self) -> None:
        with suppress(OSError):
            self._chain.close()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._go_on(), name="audit-trail")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        with suppress(KeyStoreError, OSError):
            await self.anchor()
        self.close()

    async def _go_on(self) -> None:
        while True:
            try:
                await self.anchor()
                keep = self._keep
                if keep is not None and (old := await asyncio.to_thread(self._chain.checkpoint, keep)):
                    # The store learns of the checkpoint before anything goes: it excuses what is missing.
                    await self.anchor()
                    await asyncio.to_thread(remove, old)
            except Exception as error:  # the next time it may go
                if not self._failing:
                    self._log.warning("audit_head_not_stored", reason=str(error), records=self.unanchored)
                self._failing = True
            else:
                self._failing = False
            await asyncio.sleep(self._every_seconds)


def _start(torn_bytes: int) -> dict[str, Any]:
    started = {"host": socket.gethostname(), "pid": os.getpid(), "release": version("ttmark")}
    return {"action": START, **started, **({"torn_bytes": torn_bytes} if torn_bytes else {})}


def _document(event: Event) -> dict[str, Any]:
    """What is written of an event: what looks like a key or a password is not."""
    return {
        name: redact_text(value) if isinstance(value, str) and name not in _IDENTIFIERS else value
        for name, value in {"action": event.action, **event.said}.items()
    }


def watch_trail(trail: AuditTrail | None, registry: CollectorRegistry) -> None:
    """Registers the gauges, read at each scrape; 0 where there is no trail."""
    watch_gauge(
        registry,
        "ttmark_audit_unanchored_records",
        "Records of the audit trail that the key store does not know of yet; rises while it is away.",
        lambda: trail.unanchored if trail else 0,
    )
    watch_gauge(
        registry,
        "ttmark_audit_lost_events",
        "Events since the start that could not be written to the audit trail.",
        lambda: trail.lost if trail else 0,
    )
