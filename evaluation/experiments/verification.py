"""`verification`: the likelihood ratio with what the writing model says of a text, and without."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import typer
from numpy.typing import NDArray

from ttmark.evaluation.cells import Cell, SamplingSetting, Setting, prf_key
from ttmark.evaluation.intervals import Interval, clopper_pearson, mean
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.options import BlockSizes, Length, OneSetting, Schemes, Texts
from ttmark.evaluation.paper import row_name
from ttmark.evaluation.report.result import Table, groups, power_of_ten, table_by
from ttmark.gen_service.decoding.filter_params import FilterParams
from ttmark.gen_service.decoding.filters import filter_rows
from ttmark.shared.watermark.likelihood.evidence import LikelihoodTest, detect_likelihood
from ttmark.shared.watermark.likelihood.reading import Reading

FPR = 1e-5
NULL_LEVELS = (1e-2, 1e-3)
NULL_TEXTS = 20

WITH_PROMPT = "with the prompt"
WRONG_SAMPLING = "with the prompt, read at T 1"
TEXT_ALONE = "the text alone"

Floats = NDArray[np.float64]
Alone = Annotated[int, typer.Option(min=2, help="Texts that are read without their prompt, too.")]
NullKeys = Annotated[int, typer.Option(min=1, help=f"Other keys for each of {NULL_TEXTS} texts of a cell.")]


@dataclass(frozen=True, slots=True)
class Verification:
    """Texts read by the model that wrote them, beside the same texts without that."""

    name: ClassVar[str] = "verification"
    title: ClassVar[str] = "Verification by the model's owner"

    setting: OneSetting = Setting.CHAT
    schemes: Schemes = ("synthid", "gumbel")
    block_sizes: BlockSizes = (1, 2)
    length: Length = 200
    texts: Texts = 48
    alone: Alone = 12
    null_keys: NullKeys = 2_000

    def measure(self, lab: Lab) -> None:
        setting = lab.setting(self.setting)
        rows = []
        for scheme in self.schemes:
            for size in self.block_sizes:
                branches = 8 if size > 1 else None  # the service's default budget
                cell = Cell(scheme, size, setting, self.length, max_branches=branches)
                rows += measure_cell(lab, cell, self.texts, self.alone, self.null_keys)
        lab.finish(self.name, tables(rows, self.length, setting), rows)


@dataclass(frozen=True, slots=True)
class VerificationRow:
    """One cell, read in one way.

    Attributes:
        reading: what stood before the text, and the sampling that was supposed.
        gain: mean decades by which the p-value falls when the text is read.
        median_log10_p: not read, then read.
        found: share found at FPR 1e-5, likewise.
        null_rates: rates of p <= NULL_LEVELS under other keys, read; empty where not measured.
    """

    scheme: str
    block_size: int
    reading: str
    texts: int
    gain: Interval
    median_log10_p: tuple[float, float]
    found: tuple[Interval, Interval]
    null_rates: tuple[Interval, ...]
    null_trials: int


def measure_cell(lab: Lab, cell: Cell, count: int, alone: int, null_keys: int) -> list[VerificationRow]:
    """A row for each way of reading; the model reads each text, and some once more without the prompt."""
    watermark, setting = cell.watermark(), cell.setting
    right = FilterParams(setting.temperature, setting.top_k, setting.top_p)
    found: dict[str, list[tuple[float, float]]] = {WITH_PROMPT: [], WRONG_SAMPLING: [], TEXT_ALONE: []}
    nulls = np.zeros(len(NULL_LEVELS), dtype=np.int64)
    for text in lab.run.texts(cell, count):
        tokens, key = text.tokens(), cell.key(lab.run.seed, text.index)
        readings = read_text(lab, lab.prompt(text.index), tokens, (right, FilterParams()))
        by_reading = dict(zip((WITH_PROMPT, WRONG_SAMPLING), readings, strict=True))
        if text.index < alone:
            (by_reading[TEXT_ALONE],) = read_text(lab, (), tokens, (right,))
        unread = detect_likelihood(watermark, [key], tokens, rate=FPR).log10_p
        for name, reading in by_reading.items():
            read = detect_likelihood(watermark, [key], tokens, rate=FPR, reading=reading).log10_p
            found[name].append((unread, read))
        if text.index < NULL_TEXTS:
            others = [
                prf_key(lab.run.seed, cell.name, text.index, "other", number) for number in range(null_keys)
            ]
            for place, level in enumerate(NULL_LEVELS):
                test = LikelihoodTest(watermark, tokens, rate=level, reading=readings[0])
                nulls[place] += np.count_nonzero(test.under(others).p_of_keys <= np.log10(level))
    trials = min(count, NULL_TEXTS) * null_keys
    rates = tuple(clopper_pearson(int(hits), trials) for hits in nulls)
    return [
        _row(cell, reading, np.array(pairs), rates if reading == WITH_PROMPT else (), trials)
        for reading, pairs in found.items()
    ]


def read_text(
    lab: Lab, prompt: Sequence[int], tokens: NDArray[np.int64], filters: Sequence[FilterParams]
) -> list[Reading]:
    """How likely the model found each token at each of the samplings, the slow, obvious way."""
    text = tokens.tolist()
    unread = 0 if prompt else 1
    logits = lab.source.language_model.logits(prompt or text[:1], text[unread:])
    found = []
    for params in filters:
        supports = filter_rows(logits, [params] * len(logits))
        read = [
            support.probability(token) if support else 0.0
            for support, token in zip(supports, text[unread:], strict=True)
        ]
        with np.errstate(divide="ignore"):
            found.append(Reading(np.log(np.array([1.0] * unread + read))))
    return found


def _row(
    cell: Cell, reading: str, log10_p: Floats, null_rates: tuple[Interval, ...], trials: int
) -> VerificationRow:
    """From log10 p of each text, not read and read [texts, 2]."""
    unread, read = np.median(log10_p, axis=0).tolist()
    plain, with_reading = (int(hits) for hits in np.sum(log10_p <= np.log10(FPR), axis=0))
    count = len(log10_p)
    return VerificationRow(
        scheme=cell.scheme or "",
        block_size=cell.block_size,
        reading=reading,
        texts=count,
        gain=mean(log10_p[:, 0] - log10_p[:, 1]),
        median_log10_p=(unread, read),
        found=(clopper_pearson(plain, count), clopper_pearson(with_reading, count)),
        null_rates=null_rates,
        null_trials=trials if null_rates else 0,
    )


def tables(rows: Sequence[VerificationRow], length: int, setting: SamplingSetting) -> list[Table]:
    """Power by way of reading, and false positives."""
    by_reading = groups(rows, lambda row: row.reading)
    power = [
        table_by(
            f"Read by the writing model, {reading}, {length} tokens, {setting}",
            found,
            {
                "": lambda row: row_name(row.scheme, row.block_size),
                "gain, decades": lambda row: row.gain,
                "median p": lambda row: power_of_ten(row.median_log10_p[0]),
                "median p, read": lambda row: power_of_ten(row.median_log10_p[1]),
                "found": lambda row: row.found[0].percent(),
                "found, read": lambda row: row.found[1].percent(),
            },
            (
                f"{found[0].texts} texts per row, each with a key of its own; found at FPR 1e-5; 95 % "
                "intervals.",
            ),
        )
        for reading, found in by_reading.items()
    ]
    null = table_by(
        "False positives of texts that the writing model read",
        [row for row in rows if row.null_trials],
        {
            "": lambda row: row_name(row.scheme, row.block_size),
            "trials": lambda row: f"{row.null_trials:,}",
            "p <= 1e-2": lambda row: row.null_rates[0].percent(),
            "p <= 1e-3": lambda row: row.null_rates[1].percent(),
        },
        ("The texts of the first table, read with keys that did not mark them; 95 % intervals.",),
    )
    return [*power, null]
