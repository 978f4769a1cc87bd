"""What detection jobs need of the process, and how they look to who made them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ttmark.detect_service.jobs.job_store import JobRecord, JobStore, StoreLimits
from ttmark.detect_service.jobs.sealing import JobHead
from ttmark.detect_service.jobs.webhooks import Webhooks
from ttmark.shared.access.scopes import Principal
from ttmark.shared.schemas.jobs import JobStatus
from ttmark.shared.vault.kek import KeyWrapper


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLimits:
    """Limits on jobs, and how they are worked on.

    Attributes:
        documents: of one job.
        body_bytes: of the request that makes one.
        store: over all replicas.
        keep_seconds: how long a job is kept after it was made, and again after it was finished.
        workers: parts of one tenant that this process works on at the same time; 0: none, of nobody.
        part_documents: documents that are worked on, sealed and answered together.
    """

    documents: int = 10_000
    body_bytes: int = 16 * 2**20
    store: StoreLimits = field(default_factory=lambda: StoreLimits(16, 32 * 2**20, 64 * 2**20))
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
    """What the tenant is shown of a job."""
    unfinished = "running" if job.answered else "queued"
    return JobStatus.model_validate(
        {
            "id": job.job_id,
            "status": unfinished if job.finished_at is None else "finished",
            "mode": head.options.mode,
            "documents": job.documents,
            "answered": job.answered,
            "failed": job.failed,
            "created_at": head.created_at,
            "finished_at": job.finished_at,
            "expires_at": job.expires_at,
        }
    )
