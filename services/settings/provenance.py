"""Settings of what says openly that a model wrote a text: visible labels, `AIGC` metadata, C2PA manifests."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from ttmark.services.settings.base import Settings
from ttmark.services.startup import StartupError
from ttmark.shared.labels import TEMPLATES, Label, LabelPlace
from ttmark.shared.signpost import DOCUMENT_PATH, deployment


class LabelSettings(Settings):
    """The words that generated texts carry visibly; detection leaves them out where they stand."""

    label: str | None = Field(
        default=None,
        max_length=200,
        description="Visible label of texts: `eu`, `cn`, or one line of your own; left out: none. "
        "Both services need the same.",
    )
    label_place: LabelPlace = Field(default="start", description="Where the label stands.")
    signpost: Annotated[str, AfterValidator(deployment)] | None = Field(
        default=None,
        description="Public address of the detection service, as https://detect.example.org, which labels "
        "and manifests name; left out: none. Both services need the same.",
    )

    @field_validator("label")
    @classmethod
    def _one_line(cls, value: str | None) -> str | None:
        words = (value or "").strip()
        if not words.isprintable():
            raise ValueError("a label is one line of printable characters")
        return words or None

    def load_label(self) -> Label | None:
        """The label, the words of a template in place of its name, with the signpost behind them."""
        if self.label is None:
            return None
        asked = f" ({self.signpost}{DOCUMENT_PATH})" if self.signpost else ""
        return Label(TEMPLATES.get(self.label, self.label) + asked, self.label_place)


_OTHERS_MAY_WRITE = 0o022


def read_own(path: Path, variable: str) -> bytes:
    """A file that nobody but its owner may write.

    Raises:
        StartupError: others may, or it cannot be read.
    """
    try:
        if path.stat().st_mode & _OTHERS_MAY_WRITE:
            raise StartupError(f"{variable}: others than its owner may write the file: chmod go-w it")
        return path.read_bytes()
    except OSError as error:
        raise StartupError(f"{variable}: cannot be read: {error.strerror}") from error
