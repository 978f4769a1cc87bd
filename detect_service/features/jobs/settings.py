"""Settings of jobs."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from ttmark.detect_service.features.jobs.job_store import StoreLimits
from ttmark.detect_service.features.jobs.sealed_jobs import JobLimits
from ttmark.detect_service.features.jobs.webhooks import Webhooks, secret_of
from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import Amount, ReadableFile, Separated, is_host
from ttmark.services.startup import StartupError


def _is_secret(value: SecretStr) -> SecretStr:
    secret_of(value.get_secret_value())
    return value


def _called_host(value: str) -> str:
    name, _, port = value.rpartition(":") if re.search(r":\d+$", value) else (value, "", "80")
    if not is_host(name.strip("[]")) or not 0 < int(port) < 65_536:
        raise ValueError("each is the name of a host, with :port where it is not the usual one")
    return value


CalledHost = Annotated[str, AfterValidator(_called_host)]


class JobSettings(Settings):
    """Limits on jobs, how they are worked on, and who may be told of them."""

    jobs_bytes: Amount = Field(
        default=64 * 2**20,
        description="What all jobs may take in the store; a tenant's, half of that.",
    )
    job_workers: int = Field(
        default=1,
        ge=0,
        le=1_000,
        description="Parts of one tenant's jobs that this replica works on at a time; 0: none.",
    )
    webhook_hosts: Annotated[tuple[CalledHost, ...], *Separated] = Field(
        default=(), description="Hosts that may be told of the end of jobs, separated by commas; empty: none."
    )
    webhook_secret: Annotated[SecretStr, AfterValidator(_is_secret)] | None = Field(
        default=None, description="Signs webhook calls: whsec_ and base64 of 24 to 64 random bytes."
    )
    webhook_secret_file: ReadableFile | None = Field(
        default=None, description="File in place of TTMARK_WEBHOOK_SECRET."
    )

    def job_limits(self) -> JobLimits:
        return JobLimits(store=StoreLimits.within(self.jobs_bytes), workers=self.job_workers)

    def open_webhooks(self) -> Webhooks | None:
        """What calls the listed hosts, if any are. Raises StartupError: no secret can be read."""
        if not self.webhook_hosts:
            return None
        if self.webhook_secret_file is not None:
            variable, secret = "TTMARK_WEBHOOK_SECRET_FILE", self.text_of("webhook_secret_file")
        elif self.webhook_secret is not None:
            variable, secret = "TTMARK_WEBHOOK_SECRET", self.webhook_secret.get_secret_value()
        else:
            raise StartupError(
                "TTMARK_WEBHOOK_HOSTS needs TTMARK_WEBHOOK_SECRET or TTMARK_WEBHOOK_SECRET_FILE"
            )
        try:
            return Webhooks(self.webhook_hosts, secret_of(secret))
        except ValueError as error:
            raise StartupError(f"{variable}: {error}") from None
