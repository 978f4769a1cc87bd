"""How often the interval for the marked share holds it, in mixtures of marked answers and human texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.changed_answers import own_tokens, read_lines
from ttmark.evaluation.core.likelihood import LEAST_LOG10_E
from ttmark.evaluation.experiment_cells import sampling_seed
from ttmark.evaluation.intervals import Interval, clopper_pearson
from ttmark.evaluation.likelihood_power import SECRET, WATERMARK
from ttmark.evaluation.planted_spans import plant
from ttmark.evaluation.report.result import Table, table_by
from ttmark.evaluation.text_edits import EDITS, WORD_EDITS, Material
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.likelihood.evidence import LikelihoodTest
from ttmark.shared.watermark.likelihood.marked_passages import find_carried

Tokens = NDArray[np.int64]

KINDS = ("whole", "half", "three answers", "repeated", "whole, edited", "half, edited")
EDITED, LEAST_TOKENS, AROUND = 0.1, 100, 600


@dataclass(frozen=True, slots=True)
class ShareRow:
    """Mixtures of one kind.

    Attributes:
        held: share of those with a finding whose interval holds the truth.
        width: of the intervals, mean.
    """

    kind: str
    texts: int
    found: int
    held: Interval
    width: float

    def plain(self) -> dict[str, Any]:
        """For a results file."""
        return asdict(self)


def read_by_key(answers: Path, tokenizer: TextTokenizer) -> dict[bytes, list[list[int]]]:
    """Answers of enough tokens by the key that marked them, in the order of their numbers."""
    by_key: dict[bytes, list[list[int]]] = {}
    for line in sorted(read_lines(answers), key=lambda line: int(str(line["index"]))):
        ids = own_tokens(line["ids"], tokenizer)
        if len(ids) >= LEAST_TOKENS:
            by_key.setdefault(bytes.fromhex(str(line["prf_key"])), []).append(ids)
    return by_key


def measure_shares(
    by_key: Mapping[bytes, Sequence[list[int]]], tokenizer: TextTokenizer, human: Sequence[str], texts: int
) -> list[ShareRow]:
    """One row a kind; `texts` mixtures in all, read as tokens from their words, without a reader.

    Raises:
        ValueError: a key has fewer than three answers, or there is none.
    """
    if not by_key or min(map(len, by_key.values())) < 3:
        raise ValueError(f"three answers of {LEAST_TOKENS} tokens under each key are needed")
    material, keys = Material.of(human), list(by_key)
    around = [np.array(ids) for ids in map(tokenizer.encode, human) if ids]
    rows = []
    for kind in KINDS:
        held, widths = [], []
        count = texts // len(KINDS)
        for number in range(count):
            generator = np.random.default_rng(sampling_seed(0, "shares", kind, number))
            key = keys[number % len(keys)]
            chosen = generator.choice(len(by_key[key]), size=3, replace=False)
            answers = [by_key[key][one] for one in chosen]
            edit = EDITS[WORD_EDITS[number % len(WORD_EDITS)]]
            if kind.endswith("edited"):
                text = edit(tokenizer.decode(answers[0]), EDITED, material, generator)
                answers[0] = tokenizer.encode(text)
            tokens, truth = _mixture(kind, [np.array(ids) for ids in answers], around, generator)
            test = LikelihoodTest(WATERMARK, tokens, sharp="never", secret=SECRET)
            if test.under([key]).log10_e < LEAST_LOG10_E:
                continue
            low, high = find_carried(WATERMARK, key, tokens).share_interval
            held.append(low <= truth <= high)
            widths.append(high - low)
        share = clopper_pearson(sum(held), len(held)) if held else Interval(0.0, 0.0, 1.0)
        rows.append(ShareRow(kind, count, len(held), share, float(np.mean(widths)) if widths else 0.0))
    return rows


def _mixture(
    kind: str, answers: Sequence[Tokens], around: Sequence[Tokens], generator: np.random.Generator
) -> tuple[Tokens, float]:
    """The tokens, and the share of them that belongs to answers, their unmarked openings included."""
    spans = list(_spans(kind, answers))
    marked = sum(span.size for span in spans)
    total = marked + {"whole": 0, "half": marked}.get(kind.partition(",")[0], AROUND)
    return plant(around, spans, total, generator).tokens, marked / total


def _spans(kind: str, answers: Sequence[Tokens]) -> Iterator[Tokens]:
    first, *others = answers
    yield first
    if kind == "three answers":
        yield from others
    if kind == "repeated":
        yield first


def shares_table(rows: Sequence[ShareRow]) -> Table:
    """All rows and what they are together."""
    held = sum(round(row.held.estimate * row.found) for row in rows)
    together = clopper_pearson(held, sum(row.found for row in rows))
    return table_by(
        "Intervals of 95 % for the marked share",
        rows,
        {
            "text": lambda row: row.kind,
            "texts": lambda row: row.texts,
            "found": lambda row: row.found,
            "held the truth": lambda row: row.held.percent(),
            "mean width": lambda row: f"{row.width:.2f}",
        },
        (
            f"Together {together.percent()}. Found: E is {10**LEAST_LOG10_E:,.0f} or more under the key that"
            " marked, without a reader.",
            "The truth is the share of the tokens that belongs to answers, the unmarked opening included."
            f" Edited: {EDITED:.0%} of the words. Half: as many tokens by people. Whole: none. Others:"
            f" {AROUND}.",
        ),
    )
