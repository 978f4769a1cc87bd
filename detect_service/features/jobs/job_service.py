"""What callers do with jobs: they are taken in, and shown to those who may see them."""

import hashlib
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge

from ttmark.detect_service.documents.backend import DetectionBackend
from ttmark.detect_service.documents.document_limits import sized
from ttmark.detect_service.features.jobs.idempotency.idempotency import Once
from ttmark.detect_service.features.jobs.job_store import JobRecord, NoRoom, room
from ttmark.detect_service.features.jobs.sealed_jobs import (
    JobHead,
    Jobs,
    JobSeal,
    open_head,
    seal_head,
    status_of,
)
from ttmark.detect_service.key_selection import check_askable, permitted
from ttmark.shared.access.scopes import Principal
from ttmark.shared.events import Event, EventSink
from ttmark.shared.http.service_errors import NotFound, StoreDown, TooLarge, TooManyRequests, Unprocessable
from ttmark.shared.languages.words import counted
from ttmark.shared.limits.rate_limits import DocumentAllowance
from ttmark.shared.schemas.detection.detect import Document
from ttmark.shared.schemas.detection.jobs import JobRequest, JobStatus
from ttmark.shared.vault.stores.key_store_errors import KeyStoreError
from ttmark.shared.watermark.interruption import pause

EVENTS = ("created", "deleted", "expired", "refused", "no_room")
DOCUMENT_OUTCOMES = ("answered", "failed")
CALL_OUTCOMES = ("taken", "failed", "given_up")


class JobMetrics:
    """Jobs by what became of them, documents by outcome, parts that were begun again, calls."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        self.jobs = counter("ttmark_jobs", "Jobs, by what became of them.", ["event"])
        self.documents = counter("ttmark_job_documents", "Documents of jobs that were answered.", ["outcome"])
        self.repeated_parts = counter(
            "ttmark_job_parts_repeated", "Parts that were begun again because their worker was gone."
        )
        self.calls = counter("ttmark_job_calls", "Attempts to tell that a job is finished.", ["outcome"])
        self.waiting = Gauge(
            "ttmark_job_documents_waiting",
            "Documents of jobs without an answer, over all replicas.",
            registry=registry,
        )
        for event in EVENTS:
            self.jobs.labels(event)
        for outcome in DOCUMENT_OUTCOMES:
            self.documents.labels(outcome)
        for outcome in CALL_OUTCOMES:
            self.calls.labels(outcome)


Run = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Does long work off the event loop."""
_RETRY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class JobService:
    """Between the routes and the store. `allowance`: asked for the documents of each job; None: no limit."""

    jobs: Jobs
    backend: DetectionBackend
    metrics: JobMetrics
    audit: EventSink
    allowance: DocumentAllowance | None

    async def create(
        self, body: JobRequest, caller: Principal, request_id: str, run: Run, key: str | None
    ) -> JobStatus:
        """Keeps a job that workers will see; once for each `key`.

        Raises:
            ServiceError: what the mode's route would answer; or a limit on jobs is reached, the webhook is
                not allowed, or the store is away; and what `Once` says.
        """
        now = time.time()
        fresh = JobStatus(
            id=uuid.uuid4().hex,
            status="queued",
            mode=body.mode,
            documents=len(body.inputs),
            answered=0,
            failed=0,
            created_at=now,
            expires_at=now + self.jobs.limits.keep_seconds,
        )
        # What is far too long is refused in the results, and neither looked at nor stored.
        inputs = sized(body.inputs, self.backend, alone=False)
        kept = body.model_copy(update={"inputs": inputs})
        charge = partial(self._charge, kept, caller, run)

        async def make(status: JobStatus) -> None:
            await self._make(status, kept, caller, run)
            self.metrics.jobs.labels("created").inc()
            self._audit(caller, request_id, "job.create", status.id)

        async def is_there(job_id: str) -> bool:
            return await self.jobs.store.get(caller.tenant, job_id) is not None

        try:
            if key is None:
                await charge()
                await make(fresh)
                return fresh
            fingerprint = await run(lambda: _fingerprint(body))
            with _store_at_hand():
                once = Once(self.jobs.store.keys, self.jobs.kek, caller, key)
                return await once.answer(fingerprint, fresh, charge, make, is_there)
        except (TooLarge, TooManyRequests, Unprocessable):
            self.metrics.jobs.labels("refused").inc()
            raise

    async def _charge(self, body: JobRequest, caller: Principal, run: Run) -> None:
        limits = self.jobs.limits
        if len(body.inputs) > limits.documents:
            raise TooLarge(
                f"The job has {len(body.inputs)} documents; the limit is {limits.documents}.",
                param="inputs",
            )
        webhooks = self.jobs.webhooks
        if body.webhook is not None and webhooks is None:
            raise Unprocessable("This service calls no webhooks.", param="webhook")
        if body.webhook is not None and webhooks is not None and not webhooks.allows(body.webhook):
            raise Unprocessable(
                "The webhook is no http or https address of a host that this service may call.",
                param="webhook",
            )
        asked = permitted(body.request(body.inputs), caller)
        await run(lambda: check_askable(asked, caller, self.backend))
        if self.allowance is not None:
            await self.allowance.take(caller, len(body.inputs))

    async def _make(self, status: JobStatus, body: JobRequest, caller: Principal, run: Run) -> None:
        size, store = self.jobs.limits.part_documents, self.jobs.limits.store
        head = JobHead(
            token_id=caller.token_id,
            created_at=status.created_at,
            part_documents=size,
            options=body.options(),
        )
        with _store_at_hand():
            sealed, seal = await seal_head(self.jobs.kek, status.id, head)
        parts: list[bytes] = await run(lambda: _sealed_parts(seal, body.inputs, size))
        needed = room(status.documents, sum(map(len, parts)))
        if needed > store.tenant_size:
            raise TooLarge(
                f"The job needs {needed} bytes, and all jobs of a tenant may take {store.tenant_size}. "
                "Divide it."
            )
        job = JobRecord(status.id, caller.tenant, sealed, status.documents, len(parts), status.expires_at)
        try:
            with _store_at_hand():
                await self.jobs.store.create(job, parts, store)
        except NoRoom as full:
            if full.limit == "bytes":
                self.metrics.jobs.labels("no_room").inc()
            why = {
                "jobs": f"The tenant has {counted(store.jobs, 'job')}, which is the limit. Delete one that "
                "is no longer needed.",
                "tenant": f"The tenant's jobs may take {store.tenant_size} bytes, and with this one, which "
                f"needs {needed}, they would take more. Delete one that is no longer needed.",
                "bytes": "There is no room for this job at the moment.",
            }
            raise TooManyRequests(why[full.limit], retry_after=_RETRY_SECONDS) from None

    async def get(self, job_id: str, caller: Principal) -> tuple[JobRecord, JobHead, JobSeal]:
        """Its own job, or with `detect:evidence` one of its tenant. Raises NotFound: no such; StoreDown."""
        with _store_at_hand():
            job = await self.jobs.store.get(caller.tenant, job_id)
            if job is None:
                raise NotFound("There is no such job.")
            head, seal = await open_head(self.jobs.kek, job_id, job.head)
        # Results hold what their maker may see: another token of the tenant must not learn more by them.
        if caller.token_id != head.token_id and not caller.sees_evidence:
            raise NotFound("There is no such job.")
        return job, head, seal

    async def status(self, job_id: str, caller: Principal) -> JobStatus:
        job, head, _ = await self.get(job_id, caller)
        return status_of(job, head)

    async def results(
        self, job_id: str, caller: Principal, offset: int, limit: int
    ) -> tuple[list[bytes], int | None, JobStatus]:
        """Results as JSON from document `offset` on, where to go on, and where the job is.

        They end before the first document without an answer. Raises as `get`.
        """
        job, head, seal = await self.get(job_id, caller)
        size = head.part_documents
        first, end = offset // size, min(job.parts, -(-(offset + limit) // size))
        lines: list[bytes] = []
        with _store_at_hand():
            for part, sealed in enumerate(
                await self.jobs.store.results(job_id, first, max(0, end - first)), first
            ):
                if sealed is None:
                    break
                lines += seal.open_results(part, sealed)
        lines = lines[offset - first * size :][:limit]
        after = offset + len(lines)
        return lines, after if after < job.documents else None, status_of(job, head)

    async def delete(self, job_id: str, caller: Principal, request_id: str) -> None:
        """Ends a job and forgets all of it. Raises as `get`."""
        await self.get(job_id, caller)
        with _store_at_hand():
            deleted = await self.jobs.store.delete(caller.tenant, job_id)
        if deleted:
            self.metrics.jobs.labels("deleted").inc()
            self._audit(caller, request_id, "job.delete", job_id)

    def _audit(self, caller: Principal, request_id: str, action: str, job_id: str) -> None:
        who, tenant = caller.token_id, caller.tenant
        self.audit(Event(action, token_id=who, tenant=tenant, request_id=request_id, job_id=job_id))


@contextmanager
def _store_at_hand() -> Iterator[None]:
    """Raises StoreDown where the store is away, or a record was sealed under a key that is not at hand."""
    try:
        yield
    except KeyStoreError:
        raise StoreDown("Jobs cannot be reached at the moment.", retry_after=1) from None


def _fingerprint(body: JobRequest) -> str:
    """The same for bodies that read the same, however they are written."""
    read = hashlib.sha256(body.options().model_dump_json().encode())
    for document in body.inputs:
        pause()
        read.update(b"\n" + document.model_dump_json().encode())
    return read.hexdigest()


def _sealed_parts(seal: JobSeal, inputs: list[Document], size: int) -> list[bytes]:
    documents = [
        document if document.id is not None else document.model_copy(update={"id": str(index)})
        for index, document in enumerate(inputs)
    ]
    parts = []
    for number, start in enumerate(range(0, len(documents), size)):
        pause()
        parts.append(seal.documents(number, documents[start : start + size]))
    return parts
