"""The settings of visible labels, and of the `AIGC` metadata beside them."""

from pydantic import Field, field_validator

from ttmark.services.settings_reading import Settings
from ttmark.shared.labels import TEMPLATES, Label, LabelPlace


class LabelSettings(Settings):
    """The words that generated texts carry visibly; detection leaves them out where they stand."""

    label: str | None = Field(
        default=None,
        max_length=200,
        description="Visible label of generated texts: `eu`, `cn`, or words of your own in one line; left "
        "out: none. Detection leaves it out of what it examines, so both services need the same.",
    )
    label_place: LabelPlace = Field(default="start", description="Where the visible label stands in a text.")

    @field_validator("label")
    @classmethod
    def _one_line(cls, value: str | None) -> str | None:
        words = (value or "").strip()
        if not words.isprintable():
            raise ValueError("a label is one line of printable characters")
        return words or None

    def load_label(self) -> Label | None:
        """The label, the words of a template in place of its name."""
        return None if self.label is None else Label(TEMPLATES.get(self.label, self.label), self.label_place)


class AigcSettings(LabelSettings):
    """What the generation service says besides."""

    aigc_producer: str | None = Field(
        default=None,
        max_length=200,
        description="Name or code of the provider, for the `AIGC` metadata (GB 45438-2025) in the watermark "
        "block of answers; left out: no such metadata.",
    )
