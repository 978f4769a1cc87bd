"""What a store of detection jobs does: it keeps sealed parts, gives each to a worker, takes one answer each.

A job's documents are cut into parts. A part is claimed under a lease: when the lease runs out, because its
worker was killed, another worker gets it. The first answer of a part counts and any later one is dropped, so
each document is answered once.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from ttmark.detect_service.idempotency.idempotency_store import RequestKeys


class TooManyJobs(Exception):
    """The tenant has as many jobs as it may."""


class TenantFull(Exception):
    """The documents and results of the tenant's jobs would take more room than they may."""


class JobStoreFull(Exception):
    """The jobs of all tenants leave no room for this one."""


RESULT_BYTES = 1_024
"""Room that is kept for a document's result from the start: most results are smaller, sealed and as JSON."""


def room(documents: int, sealed: int) -> int:
    """Bytes that count for documents without an answer, which take so many bytes sealed."""
    return sealed + RESULT_BYTES * documents


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as it lies in the store.

    Attributes:
        head: sealed; who made the job, when, and what it asks.
        parts: how many.
        answered: documents; `failed` of them with an error.
        expires_at: Unix time from which it may be forgotten.
        finished_at: Unix time of its last answer.
    """

    job_id: str
    tenant: str
    head: bytes
    documents: int
    parts: int
    expires_at: float
    answered: int = 0
    failed: int = 0
    finished_at: float | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A part that one worker has for now.

    Attributes:
        documents: sealed.
        attempt: how often it was claimed and not released, this time included.
        handle: names the claim in the store.
    """

    job: JobRecord
    part: int
    documents: bytes
    attempt: int
    handle: str


@dataclass(frozen=True, slots=True)
class PartAnswer:
    """What is written of a part.

    Attributes:
        results: sealed.
        answered: documents; `failed` of them with an error.
        expires_at: of the job, if this is its last part.
        calls: whether somebody is to be told then.
    """

    results: bytes
    answered: int
    failed: int
    now: float
    expires_at: float
    calls: bool


@dataclass(frozen=True, slots=True)
class DueCall:
    """Somebody is to be told that a job is finished, and how often that was tried, this time included."""

    job: JobRecord
    attempt: int


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """Limits that hold over all replicas. Bytes are those of sealed documents and results, and `room`.

    Attributes:
        jobs: of a tenant, until they expire or are deleted.
        tenant_size: bytes of a tenant's jobs.
        size: bytes of all jobs. What is free after a job was made is at least what its tenant then holds, so
            that tenants that take all they can still leave room to the next one.
    """

    jobs: int
    tenant_size: int
    size: int


class JobStore(Protocol):
    """Jobs and their parts. Every method raises StoreUnavailable when the store does not answer in time.

    Attributes:
        keys: idempotency keys of requests to make a job.
        lease_seconds: how long after a worker's last sign of life its part is given to another one.
    """

    keys: RequestKeys
    lease_seconds: float

    async def create(self, job: JobRecord, parts: Sequence[bytes], limits: StoreLimits) -> None:
        """Keeps a job that nobody has worked on. Repeating it changes nothing.

        Of several at once under one id, be they sealed differently, one is kept as a whole.

        Raises:
            TooManyJobs, TenantFull, JobStoreFull: nothing was kept.
        """

    async def get(self, tenant: str, job_id: str) -> JobRecord | None:
        """The tenant's job, or None."""

    async def claim(self, worker: str, besides: Collection[str] = ()) -> Claim | None:
        """A part that nobody has, of any tenant but these; who was served least recently goes first."""

    async def renew(self, claim: Claim) -> bool:
        """Begins the lease anew; False where another worker has the part by now, or the job is gone."""

    async def release(self, claim: Claim) -> None:
        """Gives the part to whoever claims it next, as if it had not been claimed."""

    async def answer(self, claim: Claim, answer: PartAnswer) -> bool:
        """Keeps the part's results and forgets its documents; False: it has results, or the job is gone."""

    async def results(self, job_id: str, first: int, count: int) -> list[bytes | None]:
        """The sealed results of parts from `first` on; None for a part without."""

    async def delete(self, tenant: str, job_id: str) -> bool:
        """Forgets a job of the tenant and everything of it; whether there was one."""

    async def expire(self, now: float) -> int:
        """Forgets the jobs whose time has come; how many."""

    async def next_call(
        self, now: float, *, pause_seconds: float, besides: Collection[str] = ()
    ) -> DueCall | None:
        """A finished job, of any tenant but these, of which somebody is to be told now.

        It is due again `pause_seconds` later, after each further attempt twice as long, until `called`.
        """

    async def called(self, job_id: str) -> None:
        """Nobody is to be told any more."""

    async def waiting(self) -> int:
        """Documents without an answer."""

    async def close(self) -> None:
        """Gives up connections and files."""
