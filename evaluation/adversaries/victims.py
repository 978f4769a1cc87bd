"""The marked texts that are attacked: a profile, its cell, and what the detection is asked about them."""

from collections.abc import Sequence
from dataclasses import dataclass

from ttmark.evaluation.adversaries.question import Question
from ttmark.evaluation.cells import Cell, SamplingSetting, default_cell
from ttmark.evaluation.lab import Lab
from ttmark.shared.watermark.schemes.registry import scheme_title


@dataclass(frozen=True, slots=True)
class Victim:
    """Texts of a profile, each with a key of its own.

    Attributes:
        name: of the profile, for readers.
    """

    name: str
    cell: Cell

    def question(self, lab: Lab, index: int) -> Question:
        """About text `index`, under its key alone."""
        keys = (self.cell.key(lab.run.seed, index),)
        return Question(self.cell.watermark(), keys, lab.source.tokenizer, lab.readings)

    def texts(self, lab: Lab, count: int) -> list[str]:
        """The first `count` texts."""
        return [lab.source.tokenizer.decode(text.token_ids) for text in lab.run.texts(self.cell, count)]


def victims(setting: SamplingSetting, tokens: int, others: Sequence[tuple[str, int]]) -> list[Victim]:
    """The default profile, and other schemes and block sizes as the tables of detection have them."""
    default = default_cell(setting, tokens)
    found = [Victim(_name(default) + ", the default", default)]
    cells = [Cell(scheme, block_size, setting, tokens) for scheme, block_size in others]
    return found + [Victim(_name(cell), cell) for cell in cells]


def _name(cell: Cell) -> str:
    width = cell.watermark().context_width
    return f"{scheme_title(cell.scheme or '')}, r {cell.block_size}, H {width}"
