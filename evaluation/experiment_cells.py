"""What is generated: sampling settings, cells of texts that are made alike, and their keys and seeds."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from ttmark.shared.watermark.schemes.watermark import Watermark


@dataclass(frozen=True, slots=True)
class SamplingSetting:
    """Truncation and temperature; `top_k` 0 is off."""

    top_k: int
    top_p: float
    temperature: float
    repetition_penalty: float = 1.0

    def __str__(self) -> str:
        penalty = (
            "" if self.repetition_penalty == 1.0 else f", repetition penalty {self.repetition_penalty:g}"
        )
        return f"top-k {self.top_k or 'off'}, top-p {self.top_p:g}, T {self.temperature:g}{penalty}"

    @property
    def slug(self) -> str:
        penalty = "" if self.repetition_penalty == 1.0 else f"-r{self.repetition_penalty:g}"
        return f"k{self.top_k}-p{self.top_p:g}-t{self.temperature:g}{penalty}"


class Setting(StrEnum):
    """Names of settings on the command line."""

    DEFAULT = "default"
    CHAT = "chat"
    STRICT = "strict"
    QWEN3 = "qwen3"
    LLAMA3 = "llama3"
    SMOLLM2 = "smollm2"


SETTINGS = {
    Setting.DEFAULT: SamplingSetting(50, 0.95, 1.0),
    Setting.CHAT: SamplingSetting(50, 0.9, 0.7),
    Setting.STRICT: SamplingSetting(20, 0.8, 0.7),
    Setting.QWEN3: SamplingSetting(20, 0.95, 0.6),
    Setting.LLAMA3: SamplingSetting(0, 0.9, 0.6),
    Setting.SMOLLM2: SamplingSetting(50, 0.92, 0.6, 1.1),
}
"""The paper's main setting; that of chat services; the stricter ones of the paper's Table 2 and appendix;
what SmolLM2's folder says."""

PRF_KEY_BYTES = 16


def _digest(*parts: object) -> bytes:
    return hashlib.sha256("/".join(str(part) for part in parts).encode()).digest()


def prf_key(seed: int, *parts: object) -> bytes:
    """A watermark key; a text has its own, so that texts are independent samples also over keys."""
    return _digest("key", seed, *parts)[:PRF_KEY_BYTES]


def sampling_seed(seed: int, *parts: object) -> int:
    """A seed for the engine or for numpy."""
    return int.from_bytes(_digest("sampling", seed, *parts)[:6], "little")


@dataclass(frozen=True, slots=True)
class Cell:
    """How the texts of a cell are made.

    Attributes:
        scheme: None for texts without a watermark.
        tokens: length of each text; an end of text is a token like others.
        context_width: None is the scheme's default.
    """

    scheme: str | None
    block_size: int
    setting: SamplingSetting
    tokens: int
    context_width: int | None = None

    @property
    def name(self) -> str:
        parts = [f"{self.scheme}-r{self.block_size}" if self.scheme else "plain", self.setting.slug]
        parts.append(f"n{self.tokens}")
        if self.context_width is not None:
            parts.append(f"h{self.context_width}")
        return "-".join(parts)

    @property
    def title(self) -> str:
        marking = f"{self.scheme} r={self.block_size}" if self.scheme else "no watermark"
        return f"{marking}, {self.setting}"

    def watermark(self) -> Watermark:
        """The watermark of these texts.

        Raises:
            ValueError: they have none.
        """
        if self.scheme is None:
            raise ValueError("texts without a watermark")
        return Watermark(self.scheme, self.block_size, self.context_width)

    def key(self, seed: int, index: int) -> bytes:
        return prf_key(seed, self.name, index)
