"""`verification`: direct detection with the model's own uncertainty as weights, beside direct detection."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import typer
from numpy.typing import NDArray

from ttmark.evaluation.cells import Cell, SamplingSetting, Setting, prf_key
from ttmark.evaluation.intervals import Interval, clopper_pearson, mean, ratio_of_means
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.options import BlockSizes, Length, OneSetting, Schemes, Texts
from ttmark.evaluation.paper import row_name
from ttmark.evaluation.report.result import Table, groups, power_of_ten, table_by
from ttmark.gen_service.decoding.filter_params import FilterParams
from ttmark.gen_service.decoding.filters import filter_rows
from ttmark.shared.watermark import Watermark, scored_positions
from ttmark.shared.watermark.detectors.tokens import context_and_block
from ttmark.shared.watermark.detectors.weighted import WeightedEvidence, block_weights, detect_weighted
from ttmark.shared.watermark.pool_scores import scores_under_each
from ttmark.shared.watermark.weighted_sums import weighted_log10_tail, weighted_total

LOG10_FPR = -5.0
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
    """Texts read by their model, which weights their blocks, beside the same blocks without weights."""

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
        gain: mean z of the weighted sum over that of the plain one.
        median_log10_p: plain, then weighted.
        found: share found at FPR 1e-5, likewise.
        null_rates: rates of p <= NULL_LEVELS of the weighted sum under other keys; empty where not measured.
    """

    scheme: str
    block_size: int
    reading: str
    texts: int
    z: Interval
    weighted_z: Interval
    gain: Interval
    median_log10_p: tuple[float, float]
    found: tuple[Interval, Interval]
    null_rates: tuple[Interval, ...]
    null_trials: int


def measure_cell(lab: Lab, cell: Cell, count: int, alone: int, null_keys: int) -> list[VerificationRow]:
    """A row for each way of reading; the model reads each text, and some once more without the prompt."""
    watermark, setting = cell.watermark(), cell.setting
    right = FilterParams(setting.temperature, setting.top_k, setting.top_p)
    evidence: dict[str, list[WeightedEvidence]] = {WITH_PROMPT: [], WRONG_SAMPLING: [], TEXT_ALONE: []}
    nulls = np.zeros(len(NULL_LEVELS), dtype=np.int64)
    for text in lab.run.texts(cell, count):
        tokens, key = text.tokens(), cell.key(lab.run.seed, text.index)
        probs = read_text(lab, lab.prompt(text.index), tokens, (right, FilterParams()))
        for reading, of_tokens in zip((WITH_PROMPT, WRONG_SAMPLING), probs, strict=True):
            evidence[reading].append(detect_weighted(watermark, [key], tokens, of_tokens))
        if text.index < alone:
            (of_tokens,) = read_text(lab, (), tokens, (right,))
            evidence[TEXT_ALONE].append(detect_weighted(watermark, [key], tokens, of_tokens))
        if text.index < NULL_TEXTS:
            others = [
                prf_key(lab.run.seed, cell.name, text.index, "other", number) for number in range(null_keys)
            ]
            nulls += false_positives(watermark, others, tokens, probs[0])
    trials = min(count, NULL_TEXTS) * null_keys
    rates = tuple(clopper_pearson(int(hits), trials) for hits in nulls)
    return [
        _row(cell, reading, found, rates if reading == WITH_PROMPT else (), trials)
        for reading, found in evidence.items()
    ]


def read_text(
    lab: Lab, prompt: Sequence[int], tokens: NDArray[np.int64], filters: Sequence[FilterParams]
) -> list[Floats]:
    """How likely the model found each token [tokens] at each of the samplings, the slow, obvious way."""
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
        found.append(np.array([1.0] * unread + read))
    return found


def false_positives(
    watermark: Watermark, keys: Sequence[bytes], tokens: NDArray[np.int64], probs: Floats
) -> NDArray[np.int64]:
    """Under how many of the keys p is at most each of `NULL_LEVELS`."""
    size, null = watermark.block_size, watermark.null
    starts = scored_positions(tokens, size, watermark.context_width)
    weights = block_weights(watermark, probs[starts[:, None] + np.arange(size)].prod(axis=1))
    counted = weights > 0
    rows = context_and_block(watermark, tokens, starts[counted])
    totals = np.concatenate(
        [
            weighted_total(null, scores, weights[counted])
            for _, scores in scores_under_each(watermark, keys, *rows)
        ]
    )
    falling = np.sort(totals)[::-1]
    hits = []
    for level in NULL_LEVELS:
        low, high = 0, len(falling)  # p rises along the totals: by halves to the last within the level
        while low < high:
            middle = (low + high) // 2
            within = weighted_log10_tail(null, weights[counted], int(falling[middle])) <= np.log10(level)
            low, high = (middle + 1, high) if within else (low, middle)
        hits.append(low)
    return np.array(hits)


def _row(
    cell: Cell, reading: str, found: Sequence[WeightedEvidence], null_rates: tuple[Interval, ...], trials: int
) -> VerificationRow:
    plain = np.array([each.unweighted.z for each in found])
    weighted = np.array([each.weighted.z for each in found])
    log10_p = np.array([[each.unweighted.log10_p, each.weighted.log10_p] for each in found]).T
    return VerificationRow(
        scheme=str(cell.scheme),
        block_size=cell.block_size,
        reading=reading,
        texts=len(found),
        z=mean(plain),
        weighted_z=mean(weighted),
        gain=ratio_of_means(weighted, plain),
        median_log10_p=(float(np.median(log10_p[0])), float(np.median(log10_p[1]))),
        found=(_rate(log10_p[0]), _rate(log10_p[1])),
        null_rates=null_rates,
        null_trials=trials if null_rates else 0,
    )


def _rate(log10_p: Floats) -> Interval:
    return clopper_pearson(int(np.sum(log10_p <= LOG10_FPR)), log10_p.size)


def tables(rows: Sequence[VerificationRow], length: int, setting: SamplingSetting) -> list[Table]:
    """Power by way of reading, and false positives."""
    by_reading = groups(rows, lambda row: row.reading)
    power = [
        table_by(
            f"Blocks weighted by the model, {reading}, {length} tokens, {setting}",
            found,
            {
                "": lambda row: row_name(row.scheme, row.block_size),
                "z": lambda row: row.z,
                "z, weighted": lambda row: row.weighted_z,
                "gain": lambda row: row.gain,
                "median p": lambda row: power_of_ten(row.median_log10_p[0]),
                "median p, weighted": lambda row: power_of_ten(row.median_log10_p[1]),
                "found": lambda row: row.found[0].percent(),
                "found, weighted": lambda row: row.found[1].percent(),
            },
            (
                f"{found[0].texts} texts per row, each with a key of its own; found at FPR 1e-5; 95 % "
                "intervals.",
            ),
        )
        for reading, found in by_reading.items()
    ]
    null = table_by(
        "False positives of weighted sums",
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
