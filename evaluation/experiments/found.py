"""`found`: what the detection service finds of the default profile's texts, as they come to it: as words."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ttmark.evaluation.adversaries.victims import Victim
from ttmark.evaluation.cells import Cell, Setting, sampling_seed
from ttmark.evaluation.edits import EDITS, Material
from ttmark.evaluation.experiments.frontier import NOW
from ttmark.evaluation.intervals import Interval, clopper_pearson
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.options import Human, Lengths, OneSetting, Texts
from ttmark.evaluation.profiles import DOCUMENT
from ttmark.evaluation.quality import until_end
from ttmark.evaluation.report.figure import Figure, Panel, Series
from ttmark.evaluation.report.result import Table, groups, rate_name, table_by
from ttmark.evaluation.run import Completion
from ttmark.evaluation.spans import plant
from ttmark.evaluation.word_edits import WORD_EDITS
from ttmark.shared.watermark import corrected

SHARES = (0.05, 0.1, 0.25)
FPRS = (1e-2, 1e-3, 1e-5)
KEYS = (1, 16, 64)
"""Keys that are tried: one, a pool of 16, and four such pools."""
AS_WRITTEN = "as written"
INSIDE = f"among {DOCUMENT} tokens by people"

Document = tuple[int, str]
"""Number of a text, and the words that the service is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What `/v1/detect` finds of the default profile's texts: whole, edited and among texts by people."""

    name: ClassVar[str] = "found"
    title: ClassVar[str] = "What the service finds"

    setting: OneSetting = Setting.CHAT
    texts: Texts = 250
    lengths: Lengths = (50, 100, 200)
    human: Human = None

    def measure(self, lab: Lab) -> None:
        cell = NOW.cell(lab.setting(self.setting), max(self.lengths))
        texts, human = lab.run.texts(cell, self.texts), lab.human_texts(self.human)
        rows = [row for length in self.lengths for row in measure_found(lab, cell, texts, length, human)]
        lab.finish(self.name, [found_table(rows, cell)], rows, [found_figure(rows)])


@dataclass(frozen=True, slots=True)
class Rate:
    """Share of texts that are found at `fpr` where `keys` keys are tried."""

    keys: int
    fpr: float
    share: Interval


@dataclass(frozen=True, slots=True)
class FoundRow:
    """Texts of one length after one change.

    Attributes:
        texts: that are as long before the model ends them; they are cut to the length.
        change: `AS_WRITTEN`, a share of edited words, or `INSIDE`.
        median_log10_p: with one key tried.
        rates: for each of `KEYS` and `FPRS`.
    """

    change: str
    length: int
    texts: int
    median_log10_p: float
    rates: tuple[Rate, ...]


def measure_found(
    lab: Lab, cell: Cell, texts: Sequence[Completion], length: int, human: Sequence[str]
) -> Iterator[FoundRow]:
    """One row for each change to the first `length` tokens of each text."""
    victim = Victim(str(NOW), cell)
    for change, documents in changed(lab, cell, texts, length, human).items():
        log10_p = {
            fpr: np.array([victim.question(lab, index, fpr).log10_p(words) for index, words in documents])
            for fpr in FPRS
        }
        rates = tuple(Rate(keys, fpr, _share(log10_p[fpr], keys, fpr)) for keys in KEYS for fpr in FPRS)
        yield FoundRow(change, length, len(documents), float(np.median(log10_p[FPRS[-1]])), rates)


def _share(log10_p: np.ndarray[tuple[int], np.dtype[np.float64]], keys: int, fpr: float) -> Interval:
    hits = sum(corrected(one, keys) <= math.log10(fpr) for one in log10_p.tolist())
    return clopper_pearson(hits, log10_p.size)


def changed(
    lab: Lab, cell: Cell, texts: Sequence[Completion], length: int, human: Sequence[str]
) -> dict[str, list[Document]]:
    """The documents after each change; kinds of edits come in turn, one for each text."""
    tokenizer, material = lab.source.tokenizer, Material.of(human)
    around = [np.array(tokens) for tokens in map(tokenizer.encode, human) if tokens]
    documents: dict[str, list[Document]] = {}
    for number, text in enumerate(texts):
        tokens = until_end(text.token_ids, lab.source.end_tokens)[:length]
        if len(tokens) < length:
            continue
        whole = tokenizer.decode(tokens)
        generator = np.random.default_rng(sampling_seed(lab.run.seed, "found", cell.name, length, text.index))
        edit = EDITS[WORD_EDITS[number % len(WORD_EDITS)]]
        versions = {AS_WRITTEN: whole}
        for share in SHARES:
            versions[f"{share:.0%} of the words edited"] = edit(whole, share, material, generator)
        planted = plant(around, [np.array(tokens)], DOCUMENT + length, generator).tokens
        versions[INSIDE] = tokenizer.decode(planted.tolist())
        for change, words in versions.items():
            documents.setdefault(change, []).append((text.index, words))
    return documents


def found_table(rows: Sequence[FoundRow], cell: Cell) -> Table:
    """All rows."""

    def share(number: int) -> Callable[[FoundRow], str]:
        return lambda row: row.rates[number].share.percent()

    columns = [
        (f"found at {rate_name(rate.fpr)}, {rate.keys} key{'s' * (rate.keys > 1)}", share(number))
        for number, rate in enumerate(rows[0].rates)
        if rate.keys == KEYS[1] or rate.fpr == FPRS[-1]
    ]
    return table_by(
        f"Texts that `/v1/detect` finds, {NOW}, {cell.setting}",
        rows,
        {
            "tokens": lambda row: row.length,
            "text": lambda row: row.change,
            "texts": lambda row: row.texts,
            **dict(columns),
        },
        (
            "Read from their words as `/v1/detect` reads them, without a reader. Each text has a prompt and"
            " a key of its own; p-values are multiplied by the number of keys.",
            "Texts that the model ends sooner are left out, the others are cut to the length.",
            "Of the edited texts one third each has words substituted, deleted and inserted.",
            "Intervals are 95 % (Clopper-Pearson).",
        ),
    )


def found_figure(rows: Sequence[FoundRow]) -> Figure:
    """Share found against length, by change, with a default pool at the finest rate."""
    series = tuple(
        Series(
            change.replace(" of the words", "").replace(" by people", ""),
            tuple(row.length for row in of),
            tuple(_of(row, KEYS[1], FPRS[-1]) for row in of),
        )
        for change, of in groups(rows, lambda row: row.change).items()
    )
    panel = Panel(f"{KEYS[1]} keys tried", "tokens", f"share found at {rate_name(FPRS[-1])}", series)
    return Figure("found", "What the service finds", (panel,))


def _of(row: FoundRow, keys: int, fpr: float) -> Interval:
    return next(rate.share for rate in row.rates if (rate.keys, rate.fpr) == (keys, fpr))
