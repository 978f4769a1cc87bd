"""`averaging`: texts that are put together from several answers to one prompt, all keys of the pool tried."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar

import numpy as np
import typer

from ttmark.evaluation.adversaries.mixing import by_sentences, by_words
from ttmark.evaluation.adversaries.question import Question
from ttmark.evaluation.cells import Cell, Setting, prf_key
from ttmark.evaluation.experiments.frontier import NOW
from ttmark.evaluation.intervals import Interval, wilson
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.options import Length, OneSetting
from ttmark.evaluation.report.figure import Figure, Panel, line
from ttmark.evaluation.report.result import Table, groups, rate_name, table_by

FPRS = (1e-2, 1e-5)
POOLS = (16, 1)
MIXES: dict[str, Callable[[Sequence[str]], str]] = {
    "sentences in turn": by_sentences,
    "20 words in turn": partial(by_words, run=20),
    "5 words in turn": partial(by_words, run=5),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Averaging:
    """What is found of texts mixed from several answers to one prompt, under one key or a pool of 16."""

    name: ClassVar[str] = "averaging"
    title: ClassVar[str] = "Answers mixed"

    setting: OneSetting = Setting.CHAT
    length: Length = 200
    prompt_count: Annotated[int, typer.Option(min=1, help="Prompts that are asked again and again.")] = 20
    answers: Annotated[int, typer.Option(min=1, help="To each prompt; 1, 2, 4, ... of them are mixed.")] = 8

    def measure(self, lab: Lab) -> None:
        setting = lab.setting(self.setting)
        rows: list[MixedRow] = []
        for pool in POOLS:
            cell = replace(NOW.cell(setting, self.length), pool=pool, prompts=self.prompt_count)
            rows += measure_mixed(lab, cell, self.prompt_count, self.answers)
        lab.finish(self.name, [mixed_table(rows, self)], rows, [mixed_figure(rows)])


@dataclass(frozen=True, slots=True)
class MixedRow:
    """Texts of one mixture.

    Attributes:
        pool: keys, all of which are tried.
        mixed: answers that a text is made of.
        words: mean length of the mixed texts.
        found: at each of `FPRS`.
        several: share in which more than one key of the pool is found at the finer rate.
    """

    pool: int
    mix: str
    mixed: int
    texts: int
    words: float
    found: tuple[Interval, ...]
    several: Interval


def measure_mixed(lab: Lab, cell: Cell, prompts: int, answers: int) -> Iterator[MixedRow]:
    """Disjoint groups of 1, 2, 4, ... answers to each prompt, mixed in each way."""
    question = Question(cell.watermark(), pool_keys(cell, lab.run.seed), lab.source.tokenizer, lab.readings)
    texts = [
        lab.source.tokenizer.decode(one.token_ids) for one in lab.run.texts(cell, prompts * answers)
    ]  # text i answers prompt i mod prompts
    for name, mix in MIXES.items():
        size = 1
        while size <= answers:
            groups_of = [
                texts[prompt::prompts][start : start + size]
                for prompt in range(prompts)
                for start in range(0, answers - size + 1, size)
            ]
            if size > 1 or name == next(iter(MIXES)):
                yield _row(question, name if size > 1 else "none", size, [mix(of) for of in groups_of])
            size *= 2


def pool_keys(cell: Cell, seed: int) -> tuple[bytes, ...]:
    """Every key that a text of the cell may have.

    Raises:
        ValueError: each text has its own.
    """
    if cell.pool is None:
        raise ValueError("the texts have no pool")
    if cell.pool == 1:
        return (prf_key(seed, cell.name),)
    return tuple(prf_key(seed, cell.name, number) for number in range(cell.pool))


def _row(question: Question, mix: str, size: int, texts: Sequence[str]) -> MixedRow:
    log10_p = np.array([question.log10_p(text) for text in texts])
    several = [question.keys_found(text, FPRS[-1]) > 1 for text in texts]
    return MixedRow(
        pool=len(question.keys),
        mix=mix,
        mixed=size,
        texts=len(texts),
        words=float(np.mean([len(text.split()) for text in texts])),
        found=tuple(wilson(int((log10_p <= math.log10(fpr)).sum()), len(texts)) for fpr in FPRS),
        several=wilson(sum(several), len(texts)),
    )


def mixed_table(rows: Sequence[MixedRow], plan: Averaging) -> Table:
    """All rows."""

    def found(number: int) -> Callable[[MixedRow], str]:
        return lambda row: row.found[number].percent()

    return table_by(
        f"Texts mixed from answers to one prompt, {NOW}, {plan.length} tokens each",
        rows,
        {
            "keys": lambda row: row.pool,
            "mix": lambda row: row.mix,
            "answers in a text": lambda row: row.mixed,
            "texts": lambda row: row.texts,
            "words, mean": lambda row: f"{row.words:.0f}",
            **{f"found at {rate_name(fpr)}": found(number) for number, fpr in enumerate(FPRS)},
            f"several keys found at {rate_name(FPRS[-1])}": lambda row: row.several.percent(),
        },
        (
            f"Setting {plan.setting}, {plan.prompt_count} prompts, {plan.answers} answers to each. A mixed"
            " text is about as long as one answer. Found by the question of `/v1/detect`, with all keys.",
            "Intervals are 95 % (Wilson).",
        ),
    )


def mixed_figure(rows: Sequence[MixedRow]) -> Figure:
    """Found at the finer rate by number of answers, a panel for each number of keys."""
    panels = []
    for pool, of_pool in groups(rows, lambda row: row.pool).items():
        alone = [row for row in of_pool if row.mixed == 1]
        series = tuple(
            line(mix, [*alone, *of], lambda row: row.mixed, lambda row: row.found[-1])
            for mix, of in groups([row for row in of_pool if row.mixed > 1], lambda row: row.mix).items()
        )
        panels.append(
            Panel(f"{pool} keys", "answers in a text", f"found at {rate_name(FPRS[-1])}", series, log_x=True)
        )
    return Figure("averaging", "Answers mixed", tuple(panels))
