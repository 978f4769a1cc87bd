"""Sampling settings that the paper's experiments name."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class SamplingSetting:
    """Truncation and temperature; `top_k` 0 is off."""

    top_k: int
    top_p: float
    temperature: float
    frequency_penalty: float = 0.0

    def __str__(self) -> str:
        text = f"top-k {self.top_k or 'off'}, top-p {self.top_p:g}, T {self.temperature:g}"
        return text + f", frequency penalty {self.frequency_penalty:g}" * bool(self.frequency_penalty)

    @property
    def slug(self) -> str:
        """The setting as part of a file name."""
        slug = f"k{self.top_k}-p{self.top_p:g}-t{self.temperature:g}"
        return slug + f"-f{self.frequency_penalty:g}" * bool(self.frequency_penalty)


class Setting(StrEnum):
    """Names of settings on the command line."""

    DEFAULT = "default"
    STRICT = "strict"
    QWEN3 = "qwen3"
    LLAMA3 = "llama3"
    ISO = "iso"
    ISO_FRESH = "iso-fresh"


SETTINGS = {
    Setting.DEFAULT: SamplingSetting(50, 0.95, 1.0),
    Setting.STRICT: SamplingSetting(20, 0.8, 0.7),
    Setting.QWEN3: SamplingSetting(20, 0.95, 0.6),
    Setting.LLAMA3: SamplingSetting(0, 0.9, 0.6),
}
"""The paper's main setting, and the stricter ones of its Table 2 and appendix."""

CALIBRATED = {Setting.ISO: 0.0, Setting.ISO_FRESH: 0.5}
"""Frequency penalties of the settings whose temperature is calibrated. At low temperature a small model falls
into loops, and what repeats carries no watermark; the penalty keeps its text as fresh as a large model's."""
