"""A cell: texts that are generated alike, under one name by which a run finds them again."""

from dataclasses import dataclass

from evaluation.seeds import prf_key
from evaluation.settings import SamplingSetting
from shared.watermark import Watermark

Parameters = tuple[tuple[str, int | float | bool], ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """How the texts of a cell are made.

    Attributes:
        scheme: None for texts without a watermark.
        tokens: length of each text; an end of text is a token like others.
        context_width: None is the scheme's default.
        parameters: those that differ from the scheme's defaults.
        max_branches: branch budget; None is no limit.
        prompts: only so many prompts are used, in turn; None uses all.
        one_key: all texts have the same key.
    """

    scheme: str | None
    block_size: int
    setting: SamplingSetting
    tokens: int
    context_width: int | None = None
    parameters: Parameters = ()
    max_branches: int | None = None
    prompts: int | None = None
    one_key: bool = False

    @property
    def name(self) -> str:
        """Unique among cells, and a file name."""
        parts = [f"{self.scheme}-r{self.block_size}" if self.scheme else "plain", self.setting.slug]
        parts.append(f"n{self.tokens}")
        if self.context_width is not None:
            parts.append(f"h{self.context_width}")
        parts += [f"{name}{value:g}" for name, value in sorted(self.parameters)]
        if self.max_branches is not None:
            parts.append(f"b{self.max_branches}")
        parts += ["onekey"] * self.one_key
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
        return Watermark(self.scheme, self.block_size, self.context_width, dict(self.parameters))

    def unmarked(self) -> "Cell":
        """The cell of the same length and sampling without a watermark."""
        return Cell(None, 1, self.setting, self.tokens, prompts=self.prompts)

    def key(self, seed: int, index: int) -> bytes:
        """The watermark key of a text."""
        return prf_key(seed, self.name) if self.one_key else prf_key(seed, self.name, index)
