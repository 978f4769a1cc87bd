"""What is generated: sampling settings, cells of texts that are made alike, and their keys and seeds."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ttmark.shared.watermark import Watermark


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
    CHAT = "chat"
    STRICT = "strict"
    QWEN3 = "qwen3"
    LLAMA3 = "llama3"
    ISO = "iso"
    ISO_FRESH = "iso-fresh"


SETTINGS = {
    Setting.DEFAULT: SamplingSetting(50, 0.95, 1.0),
    Setting.CHAT: SamplingSetting(50, 0.9, 0.7),
    Setting.STRICT: SamplingSetting(20, 0.8, 0.7),
    Setting.QWEN3: SamplingSetting(20, 0.95, 0.6),
    Setting.LLAMA3: SamplingSetting(0, 0.9, 0.6),
}
"""The paper's main setting; that of chat services; the stricter ones of the paper's Table 2 and appendix."""

CALIBRATED = {Setting.ISO: 0.0, Setting.ISO_FRESH: 0.5}
"""Frequency penalties of the settings whose temperature is calibrated. At low temperature a small model falls
into loops, and what repeats carries no watermark; the penalty keeps its text as fresh as a large model's."""


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
        max_branches: branch budget; None is no limit.
        prompts: only so many prompts are used, in turn; None uses all.
        pool: number of keys, one of which is drawn for each text; 1: all have the same; None: each its own.
        opening_bits: surprise of a text's tokens before its first mark.
    """

    scheme: str | None
    block_size: int
    setting: SamplingSetting
    tokens: int
    context_width: int | None = None
    max_branches: int | None = None
    prompts: int | None = None
    pool: int | None = None
    opening_bits: float = 0.0

    @property
    def name(self) -> str:
        """Unique among cells, and a file name."""
        parts = [f"{self.scheme}-r{self.block_size}" if self.scheme else "plain", self.setting.slug]
        parts.append(f"n{self.tokens}")
        if self.context_width is not None:
            parts.append(f"h{self.context_width}")
        if self.max_branches is not None:
            parts.append(f"b{self.max_branches}")
        if self.pool is not None:
            parts.append("onekey" if self.pool == 1 else f"pool{self.pool}")
        parts += [f"open{self.opening_bits:g}"] * (self.opening_bits > 0)
        if self.prompts is not None:
            parts.append(f"q{self.prompts}")
        return "-".join(parts)

    @property
    def title(self) -> str:
        """For a progress bar."""
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

    def unmarked(self) -> "Cell":
        """The cell of the same length and sampling without a watermark."""
        return Cell(None, 1, self.setting, self.tokens, prompts=self.prompts)

    def prompt_ids(self, index: int, prompts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """What a text continues: one of the model's prompts."""
        return prompts[index % min(self.prompts or len(prompts), len(prompts))]

    def key(self, seed: int, index: int) -> bytes:
        """The watermark key of a text."""
        if self.pool is None:
            return prf_key(seed, self.name, index)
        if self.pool == 1:
            return prf_key(seed, self.name)
        return prf_key(seed, self.name, sampling_seed(seed, "pool", self.name, index) % self.pool)


DEFAULT_PROFILE = "gumbel, r 2, H 2"


def default_cell(setting: SamplingSetting, tokens: int) -> Cell:
    """Texts under the default profile, with the branch budget of a service (docs/adr/0073)."""
    return Cell("gumbel", 2, setting, tokens, 2, max_branches=8)
