"""Settings of the processes that read files."""

from pydantic import Field

from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import AtOnce


class ExtractionSettings(Settings):
    extract_workers: AtOnce = Field(
        default=2, description="Processes that read files (docx, html, pdf, text)."
    )
