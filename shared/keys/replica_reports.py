"""What each running replica knows of the keys: a rotation waits until all know the new version."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from ttmark.shared.vault.stores.key_store_errors import RevisionConflict
from ttmark.shared.vault.stores.store import RecordStore

KIND = "replica"
_ATTEMPTS = 3
# A running replica that reaches the store reports four times in this time, unless it is told otherwise.
_SILENT_AFTER = timedelta(seconds=60)


class ReplicaReport(BaseModel):
    """A replica's latest report.

    Attributes:
        known: the epoch of each key that it works with.
        serves_until: how long it may go on with these keys if it cannot reach the store any more;
            in the past once it has stopped in order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    known: Mapping[str, int]
    reported_at: AwareDatetime
    serves_until: AwareDatetime


class ReplicaReporter:
    """Writes the reports of one replica.

    Args:
        replica_id: should survive a restart: service, host and port.
        max_age_seconds: how long the replica goes on with keys that it cannot read again.
        every_seconds: how often the same report is repeated. A report is a change that stores announce:
            replicas that answered each announcement with a report would never come to rest.
    """

    def __init__(
        self,
        store: RecordStore,
        replica_id: str,
        *,
        max_age_seconds: float,
        every_seconds: float = 0.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._replica_id = replica_id
        self._serves = timedelta(seconds=max_age_seconds + every_seconds)
        self._every_seconds = every_seconds
        self._now = now
        self._reported: tuple[float, Mapping[str, int]] | None = None

    async def report(self, known: Mapping[str, int]) -> None:
        """Says which epoch of each key this replica works with from now on.

        Raises:
            StoreUnavailable: the report did not get through.
        """
        if self._reported is not None:
            reported_at, before = self._reported
            if known == before and time.monotonic() - reported_at < self._every_seconds:
                return
        now, started = self._now(), time.monotonic()
        await self._write(ReplicaReport(known=known, reported_at=now, serves_until=now + self._serves))
        self._reported = started, dict(known)

    async def sign_off(self) -> None:
        """Says that this replica serves no more.

        Raises:
            StoreUnavailable: it did not get through; the replica counts until its keys are too old.
        """
        now = self._now()
        await self._write(ReplicaReport(known={}, reported_at=now, serves_until=now))

    async def _write(self, report: ReplicaReport) -> None:
        payload = report.model_dump_json().encode()
        for _ in range(_ATTEMPTS):
            stored = await self._store.get(KIND, self._replica_id)
            revision = stored.revision if stored else 0
            with suppress(RevisionConflict):
                await self._store.put(KIND, self._replica_id, payload, expected_revision=revision)
                return
        raise RevisionConflict(f"replica {self._replica_id} keeps changing")


async def replicas_behind(store: RecordStore, key_id: str, epoch: int, now: datetime) -> list[str]:
    """Replicas that may still serve and have not reported `epoch` of the key, ordered by id.

    A replica that fell silent counts until its keys are too old to be served: it may be cut off alone.
    How long it has been silent, and how long it counts, is said behind its id.
    """
    behind = []
    for replica_id, stored in await store.scan(KIND):
        try:
            report = ReplicaReport.model_validate_json(stored.payload)
        except ValidationError:
            behind.append(replica_id)
            continue
        if report.serves_until > now and report.known.get(key_id, 0) < epoch:
            behind.append(replica_id + _silence(report, now))
    return behind


def _silence(report: ReplicaReport, now: datetime) -> str:
    if now - report.reported_at < _SILENT_AFTER:
        return ""
    minutes = int((now - report.reported_at).total_seconds() // 60)
    return f" (silent for {minutes} min, counts until {report.serves_until:%Y-%m-%d %H:%M} UTC)"
