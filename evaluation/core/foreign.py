"""False positives of other systems' marks under wrong keys: prose, code, lists, loops, invoices."""

import logging
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.core.false_positives_of_texts import token_ids, unwatermarked
from ttmark.evaluation.core.rate_tables import Count
from ttmark.shared.watermark.foreign import ForeignMark, Kgw, SglangGumbel, SynthIdText, VllmGumbel
from ttmark.shared.watermark.foreign.evidence import passages

TOKENS = 200
LEVELS = (1e-2, 1e-3, 1e-4, 1e-5)
VOCABULARY = 8_000
"""A green list takes time in proportion to it."""
LAYERS = 30
"""Of SynthID-Text, as many as its paper has."""
FEWER = {"kgw, lefthash": 20}
"""Divides the keys of a scheme that permutes the vocabulary for each token."""
PASSAGE_KEYS = 100
"""Divides the keys that passages are looked for with: their windows cost far more than the whole text."""

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


def texts(count: int, rng: np.random.Generator) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """So many texts of at most 200 tokens with their kind; one in six is an invoice, whose lines repeat."""
    invoices, others = templated_texts(count // 6, rng), unwatermarked(count - count // 6, rng)
    for index in range(count):
        if index % 6 == 5:
            yield "invoice", token_ids(next(invoices))[:TOKENS] % VOCABULARY
        else:
            kind, tokens = next(others)
            yield kind, tokens[:TOKENS] % VOCABULARY


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


def foreign_counts(documents: int, wrong_keys: int, seed: int) -> Iterator[Count]:
    """How many (text, wrong key) pairs are found, by scheme and kind of text; each key is drawn anew."""
    for name, make in MARKS.items():
        rng = np.random.default_rng(seed)
        whole: dict[str, list[float]] = {}
        parts: dict[str, list[float]] = {}
        for kind, tokens in texts(documents, rng):
            keys = max(1, wrong_keys // FEWER.get(name, 1))
            marks = [make(rng) for _ in range(keys)]
            whole.setdefault(kind, []).extend(mark.detect(tokens).log10_p for mark in marks)
            found = [
                passages(mark.read(tokens), tokens.size) for mark in marks[: max(1, keys // PASSAGE_KEYS)]
            ]
            parts.setdefault(kind, []).extend(best[0].log10_e if best else 0.0 for best in found)
        for question, answers in (("whole text", whole), ("passages", parts)):
            for kind, log10_p in answers.items():
                hits = [int(np.count_nonzero(np.array(log10_p) <= np.log10(level))) for level in LEVELS]
                count = Count(name, 1, f"{name}: {question}", kind, len(log10_p), hits)
                log.info("%s", count)
                yield count


def _word(rng: np.random.Generator) -> int:
    return int(rng.integers(0, 1 << 64, dtype=np.uint64))
