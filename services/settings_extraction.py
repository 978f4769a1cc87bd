"""Settings of what reads files."""

from typing import TYPE_CHECKING

from pydantic import Field

from ttmark.services.settings_reading import Settings
from ttmark.services.settings_values import Amount, AtOnce, Seconds

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
