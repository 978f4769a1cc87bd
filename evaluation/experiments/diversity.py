"""`diversity`: how many answers to one prompt differ, marked as a key does by default, and without a mark."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Annotated, ClassVar

import numpy as np
import typer
from numpy.typing import NDArray

from ttmark.evaluation.experiment import Lab
from ttmark.evaluation.experiment_cells import DEFAULT_PROFILE, Cell, Setting, default_cell
from ttmark.evaluation.intervals import Interval, bootstrap
from ttmark.evaluation.options import Length, OneSetting
from ttmark.evaluation.report.result import Table, table_by


@dataclass(frozen=True, slots=True)
class Diversity:
    """Many answers to the same prompts: how many differ under the default key, its pool and its opening?"""

    name: ClassVar[str] = "diversity"
    title: ClassVar[str] = "Different answers under the default key"

    setting: OneSetting = Setting.CHAT
    length: Length = 32
    prompt_counts: Annotated[
        tuple[int, ...], typer.Option("--prompt-count", min=1, help="The first ones; may be repeated.")
    ] = (3, 40)
    answers: Annotated[
        tuple[int, ...], typer.Option("--answers", min=2, help="To each prompt; of each number of prompts.")
    ] = (80, 16)
    pools: Annotated[
        tuple[int, ...], typer.Option("--pool", min=1, help="Keys that answers draw from; may be repeated.")
    ] = (4,)
    opening: Annotated[float, typer.Option(min=0, help="Bits of surprise before the first mark.")] = 8.0

    def measure(self, lab: Lab) -> None:
        marked = replace(default_cell(lab.setting(self.setting), self.length), opening_bits=self.opening)
        rows = [
            diversity_row(lab, replace(marked, pool=pool, prompts=prompts), answers)
            for pool in self.pools
            for prompts, answers in zip(self.prompt_counts, self.answers, strict=True)
        ]
        lab.finish(self.name, [diversity_table(rows, self, marked)], rows)


@dataclass(frozen=True, slots=True)
class DiversityRow:
    """Answers to some prompts.

    Attributes:
        answers: to each prompt.
        marked, unmarked: different ones to each prompt.
        share: of all marked ones in all unmarked ones; the interval is over prompts.
    """

    pool: int
    answers: int
    marked: tuple[int, ...]
    unmarked: tuple[int, ...]
    share: Interval


def diversity_row(lab: Lab, cell: Cell, answers: int) -> DiversityRow:
    """Text i continues prompt i mod prompts."""
    marked, unmarked = (different(lab, one, answers) for one in (cell, cell.unmarked()))
    share = bootstrap(_ratio, np.column_stack([marked, unmarked]))
    return DiversityRow(cell.pool or 0, answers, tuple(marked), tuple(unmarked), share)


def different(lab: Lab, cell: Cell, answers: int) -> list[int]:
    """Different answers to each prompt of a cell, each up to its end."""
    prompts = min(cell.prompts or len(lab.source.prompts), len(lab.source.prompts))
    ends = lab.source.end_tokens
    texts = [text.token_ids for text in lab.run.texts(cell, prompts * answers)]
    tokens = [tuple(takewhile(lambda token: token not in ends, text)) for text in texts]
    return [len(set(tokens[prompt::prompts])) for prompt in range(prompts)]


def _ratio(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of counts [.., prompts, 2]."""
    total = counts.sum(axis=-2)
    share: NDArray[np.float64] = total[..., 0] / total[..., 1]
    return share


def diversity_table(rows: Sequence[DiversityRow], plan: Diversity, cell: Cell) -> Table:
    """All rows."""
    return table_by(
        f"Different answers of {plan.length} tokens, {DEFAULT_PROFILE}, opening of {plan.opening:g} bits,"
        f" {cell.setting}",
        rows,
        {
            "keys": lambda row: row.pool,
            "prompts": lambda row: len(row.marked),
            "answers to each": lambda row: row.answers,
            "different, marked": lambda row: f"{sum(row.marked):,}",
            "fewest to a prompt": lambda row: min(row.marked),
            "different, no mark": lambda row: f"{sum(row.unmarked):,}",
            "as many as without a mark": lambda row: row.share.percent(),
        },
        (
            "Answers are compared token by token, up to their end. 95 % intervals over prompts; of three"
            " prompts they say little.",
        ),
    )
