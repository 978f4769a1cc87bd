"""Settings of detection jobs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from ttmark.services.runtime import StartupError, no_start_after
from ttmark.shared.schemas.jobs import MOST_DOCUMENTS

if TYPE_CHECKING:
    from ttmark.detect_service.jobs.jobs import JobLimits
    from ttmark.detect_service.jobs.webhooks import Webhooks


class JobSettings(BaseSettings):
    """Limits on jobs, how they are worked on, and who may be told of them."""

    model_config = SettingsConfigDict(env_prefix="TTMARK_", extra="ignore", frozen=True)

    job_documents: int = Field(default=10_000, ge=1, le=MOST_DOCUMENTS, description="Documents of one job.")
    job_bytes: int = Field(default=16 * 2**20, ge=1, description="Largest request body that makes a job.")
    jobs_per_tenant: int = Field(
        default=16, ge=0, description="Jobs of a tenant, until they are deleted or their time is over."
    )
    jobs_bytes: int = Field(
        default=64 * 2**20,
        ge=0,
        description="What documents and results of all jobs may take in the store, over all replicas.",
    )
    job_keep_seconds: float = Field(
        default=86_400.0,
        gt=0,
        description="How long a job is kept after it was made, and its results after it was finished.",
    )
    job_workers: int = Field(
        default=1,
        ge=0,
        description="Parts of jobs that this replica works on at the same time; 0: it leaves them to others.",
    )
    job_lease_seconds: float = Field(
        default=30.0,
        gt=0,
        description="Time after the last sign of life of a replica until another one does its part of a job.",
    )
    webhook_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Hosts that jobs may name to be told of their end, separated by commas, with a port "
        "where it is not the usual one; empty: none. Whoever makes jobs can have them called.",
    )
    webhook_secret: SecretStr | None = Field(
        default=None,
        description="What calls about finished jobs are signed with: whsec_ and base64 of 24 to 64 random "
        "bytes.",
    )
    webhook_secret_file: Path | None = Field(
        default=None,
        description="File with what calls about finished jobs are signed with, in place of "
        "TTMARK_WEBHOOK_SECRET.",
    )

    @field_validator("webhook_hosts", mode="before")
    @classmethod
    def _split_hosts(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(part.strip() for part in value.split(",") if part.strip())

    def job_limits(self) -> "JobLimits":
        """The same for the service."""
        from ttmark.detect_service.jobs.job_store import StoreLimits  # commands start without the service
        from ttmark.detect_service.jobs.jobs import JobLimits

        return JobLimits(
            documents=self.job_documents,
            body_bytes=self.job_bytes,
            store=StoreLimits(self.jobs_per_tenant, self.jobs_bytes),
            keep_seconds=self.job_keep_seconds,
            workers=self.job_workers,
        )

    def open_webhooks(self) -> "Webhooks | None":
        """What calls the listed hosts; None where none is listed.

        Raises:
            StartupError: there is no secret, or it cannot be read.
        """
        from ttmark.detect_service.jobs.webhooks import Webhooks, secret_of

        if not self.webhook_hosts:
            return None
        if self.webhook_secret_file is not None:
            with no_start_after(OSError, UnicodeDecodeError):
                secret = self.webhook_secret_file.read_text().strip()
        elif self.webhook_secret is not None:
            secret = self.webhook_secret.get_secret_value()
        else:
            raise StartupError(
                "TTMARK_WEBHOOK_HOSTS needs TTMARK_WEBHOOK_SECRET or TTMARK_WEBHOOK_SECRET_FILE"
            )
        with no_start_after(ValueError):
            return Webhooks(self.webhook_hosts, secret_of(secret))
