"""Settings of the detection service."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

from ttmark.services.settings.access import OidcSettings, PublicSettings
from ttmark.services.settings.base import Settings
from ttmark.services.settings.cases_and_jobs import CaseSettings, JobSettings, QueueSettings
from ttmark.services.settings.provenance import LabelSettings, TrustSettings
from ttmark.services.settings.reader import ReaderSettings
from ttmark.services.settings.service import ServiceSettings
from ttmark.services.settings.values import (
    Amount,
    AtOnce,
    Port,
    Seconds,
    TokenizerFolder,
)
from ttmark.services.state_folder import known_tokenizers

if TYPE_CHECKING:
    from ttmark.detect_service.extraction import ExtractionLimits


class ExtractionSettings(Settings):
    """What one file may cost, in the detection service and in `ttmark detect`."""

    extract_workers: AtOnce = Field(
        default=2, description="Processes that read files (docx, html, pdf, text)."
    )
    extract_queue: Amount = Field(
        default=16, description="Files that may wait to be read before 429 is answered."
    )
    extract_cpu_seconds: int = Field(
        default=5, ge=1, le=86_400, description="CPU time for a file before 413 is answered."
    )
    extract_seconds: Seconds = Field(
        default=30.0, description="Time on the clock for a file before 413 is answered."
    )
    extract_memory_bytes: Amount = Field(
        default=512 * 2**20, ge=128 * 2**20, description="Memory of a process that reads files."
    )
    extract_text_bytes: Amount = Field(
        default=16 * 2**20, ge=1, description="Longest text of a file, in UTF-8."
    )

    def extraction_limits(self) -> "ExtractionLimits":
        """The same for the workers."""
        from ttmark.detect_service.extraction import ExtractionLimits  # commands start without the service

        return ExtractionLimits(
            workers=self.extract_workers,
            queue=self.extract_queue,
            cpu_seconds=self.extract_cpu_seconds,
            seconds=self.extract_seconds,
            memory_bytes=self.extract_memory_bytes,
            text_bytes=self.extract_text_bytes,
        )


def _split_folders(value: object) -> object:
    return tuple(part for part in value.split(":") if part) if isinstance(value, str) else value


class DetectionSettings(
    CaseSettings,
    QueueSettings,
    ExtractionSettings,
    JobSettings,
    LabelSettings,
    OidcSettings,
    PublicSettings,
    ReaderSettings,
    TrustSettings,
    ServiceSettings,
):
    """Settings of the detection service."""

    detect_port: Port = Field(default=8001, description="Port to listen on.")
    tokenizers: Annotated[tuple[TokenizerFolder, ...], NoDecode, BeforeValidator(_split_folders)] = Field(
        default=(),
        description="Folders with a tokenizer.json, separated by colons; empty: the demo model's and those "
        "under `models` in the state folder.",
    )
    key_max_age_seconds: Seconds = Field(
        default=86_400.0,
        description="How long known keys are used while the store is away.",
    )
    requests_per_minute: Amount = Field(
        default=60_000,
        description="Requests of an access token in a minute, over all replicas; 0: any.",
    )
    documents_per_minute: Amount = Field(
        default=600_000, description="Documents of an access token in a minute, over all replicas; 0: any."
    )
    answers_per_passage: int = Field(
        default=12,
        ge=0,
        le=250,
        description="Answers about the same evidence that a tenant's tokens without detect:evidence "
        "get in half of TTMARK_ANSWERS_WINDOW_SECONDS; 0: any.",
    )
    answers_window_seconds: Seconds = Field(
        default=86_400.0,
        description="Time after which answers to tokens without detect:evidence, and public ones, are "
        "forgotten.",
    )
    chance_findings: float = Field(
        default=0.1,
        ge=0,
        le=1e6,
        description="False findings to be expected of a token without detect:evidence in half of "
        "TTMARK_ANSWERS_WINDOW_SECONDS: 0.1 are 10 documents at 1e-2, 10,000 at 1e-5; 0: "
        "any.",
    )
    max_document_tokens: Amount = Field(default=100_000, ge=1, description="Longest document, in tokens.")
    max_request_blocks: Amount = Field(
        default=60_000_000,
        description="Most work of a request, in hashed blocks: 4 million take about a second; 0: any.",
    )
    blocks_per_minute: Amount = Field(
        default=600_000_000,
        description="Work of a tenant in a minute over all replicas, in hashed blocks; 0: any.",
    )
    max_queue: Amount = Field(
        default=64,
        ge=1,
        description="Requests of a tenant at a time before 429 is answered.",
    )
    workers: AtOnce | None = Field(
        default=None, description="Threads for detection; empty: a core is left for the rest."
    )

    def tokenizer_folders(self) -> list[Path]:
        """The named folders, or those that are known without settings."""
        return list(self.tokenizers) or known_tokenizers(self.state)
