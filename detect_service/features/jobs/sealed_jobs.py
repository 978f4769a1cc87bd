"""Jobs as they are kept: sealed under a data key of their own, within limits; and what is shown of them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import orjson
from pydantic import BaseModel, ConfigDict

from ttmark.detect_service.documents.document_limits import RefusedDocument
from ttmark.detect_service.features.jobs.job_store import JobRecord, StoreLimits
from ttmark.detect_service.features.jobs.redis_jobs import RedisJobs
from ttmark.detect_service.features.jobs.sqlite_jobs import SqliteJobs
from ttmark.detect_service.features.jobs.webhooks import Webhooks
from ttmark.shared.access.scopes import Principal
from ttmark.shared.schemas.detection.detect import Document
from ttmark.shared.schemas.detection.jobs import JobOptions, JobResult, JobStatus
from ttmark.shared.vault.confidential import Confidential
from ttmark.shared.vault.envelope import open_record, seal_record
from ttmark.shared.vault.kek import DataKey, KeyWrapper

JobStore = SqliteJobs | RedisJobs


class JobHead(BaseModel):
    """Who made a job, when (Unix time), and what it asks; `part_documents`: in each part but the last."""

    model_config = ConfigDict(frozen=True)

    token_id: str
    created_at: float
    part_documents: int
    options: JobOptions


class JobSeal(Confidential):
    """Seals and opens what is bound to one job and its place in it."""

    __slots__ = ("_job_id", "_key")

    def __init__(self, job_id: str, key: DataKey) -> None:
        self._job_id = job_id
        self._key = key

    def documents(self, part: int, documents: list[Document]) -> bytes:
        plain = orjson.dumps([document.model_dump(exclude_none=True) for document in documents])
        return self._key.seal(plain, self._name(b"documents", part))

    def open_documents(self, part: int, sealed: bytes) -> list[Document]:
        """The documents of a part. Raises RecordTampered: it is not what was sealed."""
        plain = self._key.open(sealed, self._name(b"documents", part))
        return [RefusedDocument.stored(document) for document in orjson.loads(plain)]

    def results(self, part: int, results: list[JobResult]) -> bytes:
        lines = b"\n".join(result.model_dump_json(exclude_none=True).encode() for result in results)
        return self._key.seal(lines, self._name(b"results", part))

    def open_results(self, part: int, sealed: bytes) -> list[bytes]:
        """The results of a part, each as JSON. Raises as `open_documents`."""
        return self._key.open(sealed, self._name(b"results", part)).split(b"\n")

    def _name(self, kind: bytes, part: int) -> bytes:
        return b"ttmark job %b %b %d" % (self._job_id.encode(), kind, part)


async def seal_head(kek: KeyWrapper, job_id: str, head: JobHead) -> tuple[bytes, JobSeal]:
    """A job's sealed head, and what seals its parts: a new key, which only the head holds, wrapped."""
    plain = head.model_dump_json(exclude_unset=True).encode()
    sealed, key = await seal_record(kek, _head_name(job_id), plain)
    return sealed, JobSeal(job_id, key)


async def open_head(kek: KeyWrapper, job_id: str, sealed: bytes) -> tuple[JobHead, JobSeal]:
    """The inverse of `seal_head`; raises as `open_record`."""
    plain, key = await open_record(kek, _head_name(job_id), sealed)
    return JobHead.model_validate_json(plain), JobSeal(job_id, key)


def _head_name(job_id: str) -> bytes:
    return b"ttmark job %b head" % job_id.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLimits:
    """Limits on jobs, and how they are worked on.

    Attributes:
        body_bytes: of the request that makes one: texts of 1.6 kB in as many documents. Longer runs go to
            several jobs, or to `ttmark detect --bulk`.
        store: over all replicas.
        keep_seconds: how long a job is kept after it was made, and again after it was finished: results of
            the night are there in the morning. Whoever wants them gone sooner deletes the job.
        workers: parts of one tenant that this process works on at the same time; 0: none, of nobody.
        part_documents: documents that are worked on, sealed and answered together.
    """

    documents: int = 10_000
    body_bytes: int = 16 * 2**20
    store: StoreLimits = field(default_factory=lambda: StoreLimits.within(64 * 2**20))
    keep_seconds: float = 86_400.0
    workers: int = 1
    part_documents: int = 32


@dataclass(frozen=True, slots=True)
class Jobs:
    """Given by the composition root.

    Attributes:
        current: the principal of a token's id, as its rights are now; raises InvalidToken or another
            KeyStoreError.
        webhooks: None where nobody is told of anything.
    """

    store: JobStore
    kek: KeyWrapper
    current: Callable[[str], Awaitable[Principal]]
    limits: JobLimits = field(default_factory=JobLimits)
    webhooks: Webhooks | None = None


def status_of(job: JobRecord, head: JobHead) -> JobStatus:
    return JobStatus(
        id=job.job_id,
        status="finished" if job.finished_at is not None else "running" if job.answered else "queued",
        mode=head.options.mode,
        documents=job.documents,
        answered=job.answered,
        failed=job.failed,
        created_at=head.created_at,
        finished_at=job.finished_at,
        expires_at=job.expires_at,
    )
