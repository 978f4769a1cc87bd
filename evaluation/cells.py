"""A cell: texts that are generated alike, under one name by which a run finds them again."""

from dataclasses import dataclass, replace

from evaluation.settings import SamplingSetting
from shared.watermark import Watermark

Parameters = tuple[tuple[str, int | float | bool], ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """How the texts of a cell are made.

    Attributes:
        scheme: None for texts without a watermark.
        tokens: length of each text; end-of-text tokens do not end it.
        context_width: None is the scheme's default.
        parameters: those that differ from the scheme's defaults.
        max_branches: branch budget; None is no limit.
    """

    scheme: str | None
    block_size: int
    setting: SamplingSetting
    tokens: int
    context_width: int | None = None
    parameters: Parameters = ()
    max_branches: int | None = None

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
        return Cell(None, 1, self.setting, self.tokens)

    def single(self) -> "Cell":
        """The single-token cell that this one is compared with."""
        return replace(self, block_size=1, max_branches=None)
