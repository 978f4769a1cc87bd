"""False positives of other systems' marks on templated documents, whose lines repeat again and again."""

import logging
import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.core.rates import rate_cell
from ttmark.evaluation.core.texts import token_ids
from ttmark.evaluation.report.result import Table, table_of
from ttmark.shared.watermark.foreign import ForeignMark, Kgw, SglangGumbel, SynthIdText, VllmGumbel
from ttmark.shared.watermark.foreign.passages import passages

TOKENS = 300
KEYS = 5
LEVELS = (1e-1, 1e-2, 1e-3)
VOCABULARY = 8_000
"""A green list takes time in proportion to it."""
LAYERS = 30
"""Of SynthID-Text, as many as its paper has."""
PASSAGE_SHARE = 20
"""Passages are looked for in one of so many documents: their windows cost far more than the whole text."""

_THINGS = ("bolts", "paper", "lamps", "cables", "chairs", "paint")
_NAMES = ("Ada", "Boris", "Chandra", "Dilek", "Emeka", "Fumiko")

log = logging.getLogger(__name__)

MARKS: Mapping[str, Callable[[np.random.Generator], ForeignMark]] = {
    "vllm-gumbel": lambda rng: VllmGumbel(_word(rng)),
    "vllm-dual-gumbel": lambda rng: VllmGumbel(_word(rng), alpha=0.1),
    "sglang-gumbel": lambda rng: SglangGumbel(_word(rng)),
    "sglang-gumbel, two keys": lambda rng: SglangGumbel(_word(rng), _word(rng)),
    "kgw, lefthash": lambda rng: Kgw(VOCABULARY, _word(rng) >> 1 or 1),
    "synthid-text": lambda rng: SynthIdText(tuple(_word(rng) >> 1 for _ in range(LAYERS))),
}


def templated(count: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """The first tokens of `templated_texts` [300 tokens each]."""
    for text in templated_texts(count, rng):
        yield token_ids(text)[:TOKENS] % VOCABULARY


def templated_texts(count: int, rng: np.random.Generator) -> Iterator[str]:
    """Invoices and reports that differ in names, numbers and the order of few lines."""
    for _ in range(count):
        name, place = (str(rng.choice(_NAMES)) for _ in range(2))
        lines = [f"Dear {name}, thank you for your order. Please find the items below."]
        lines += [
            f"Item: {rng.choice(_THINGS)}. Quantity: {rng.integers(1, 9)}. Delivered in full, no remarks."
            for _ in range(40)
        ]
        checked = f"This delivery was checked by {place} on day {rng.integers(31)}."
        lines.insert(int(rng.integers(1, 9)), checked)
        yield "\n".join(lines)


def foreign_table(documents: int, seed: int) -> Table:
    """How many documents are found, each under five keys of its own and corrected for them."""
    rows = []
    for name, make in MARKS.items():
        rng = np.random.default_rng(seed)
        whole, both = [], []
        for index, tokens in enumerate(templated(documents, rng)):
            marks = [make(rng) for _ in range(KEYS)]
            texts = [mark.read(tokens) for mark in marks]
            direct = [text.evidence(0, text.positions.size).log10_p for text in texts]
            whole.append(min(direct) + math.log10(KEYS))
            if index % PASSAGE_SHARE == 0:
                best = [passages(text, tokens.size)[0].log10_e for text in texts]
                both.append(min(*direct, *best) + math.log10(2 * KEYS))
        for question, found in (("whole text", whole), ("whole text or a passage", both)):
            counts = [sum(one <= math.log10(level) for one in found) for level in LEVELS]
            cells = [rate_cell(hits, len(found), level) for hits, level in zip(counts, LEVELS, strict=True)]
            rows.append([name, question, f"{len(found):,}", *cells])
            log.info(" | ".join(rows[-1]))
    columns = ["scheme", "question", "documents", *[f"at {level:g}" for level in LEVELS]]
    return table_of("False positives of foreign marks on templated documents", columns, rows)


def _word(rng: np.random.Generator) -> int:
    return int(rng.integers(0, 1 << 64, dtype=np.uint64))
