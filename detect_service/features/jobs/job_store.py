"""What a store of detection jobs does: it keeps sealed parts, gives each to a worker, takes one answer each.

A job's documents are cut into parts. A part is claimed under a lease: when the lease runs out, because its
worker was killed, another worker gets it. The first answer of a part counts and any later one is dropped, so
each document is answered once.
"""

from dataclasses import dataclass
from typing import Literal

Limit = Literal["jobs", "tenant", "bytes"]
"""Of a tenant's jobs; of their documents and results in bytes; of those of all tenants."""


class NoRoom(Exception):
    """A limit leaves no room for a job."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(limit)
        self.limit = limit


LEASE_SECONDS = 30.0
"""How long a part is its worker's after a sign of life, of which there are three in that time: a store that
is away for some seconds costs no part, and little time is lost to a worker that was killed."""

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
        jobs: of a tenant, until they expire or are deleted: as many as go by while the largest is done.
        tenant_size: bytes of a tenant's jobs.
        size: bytes of all jobs. What is free after a job was made is at least what its tenant then holds, so
            that tenants that take all they can still leave room to the next one.
    """

    jobs: int
    tenant_size: int
    size: int

    @classmethod
    def within(cls, size: int) -> "StoreLimits":
        """A tenant has half: with more it could keep the others out."""
        return cls(16, size // 2, size)
