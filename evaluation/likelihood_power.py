"""What is found of marked documents, without a reader and with some, and under wrong keys."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.changed_answers import Document
from ttmark.evaluation.experiment_cells import prf_key
from ttmark.evaluation.intervals import Interval, clopper_pearson, mean
from ttmark.evaluation.model_readings import KnownReadings
from ttmark.evaluation.report.result import Table, groups, rate_name, table_by
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.likelihood.conversation import detect_conversation
from ttmark.shared.watermark.likelihood.evidence import LikelihoodTest, Sharp
from ttmark.shared.watermark.likelihood.importance_sampling import gate
from ttmark.shared.watermark.likelihood.reading import Reading

WATERMARK = Watermark("gumbel", 2, 2)
FPRS, KEYS, LEVELS = (1e-5, 1e-2), (1, 16), (1e-2, 1e-3, 1e-4, 1e-5)
POOL = 4
"""Keys among which each message of a conversation has one, at the least that are tried."""
FIRST, SECOND = 0.1, 0.9
"""Shares of the rate, as the service has them: of the test without a reader, and of that with one."""
NOBODY = "no reader"
MANY = 20
"""Hits from which on an interval is taken over texts, whose keys share their draws."""
SECRET = b"evaluation"


@dataclass(frozen=True, slots=True)
class FoundRow:
    """Documents of one kind, by one reader.

    Attributes:
        rates: share that is found, for each of `FPRS` and `KEYS`.
    """

    reader: str
    change: str
    tokens: int
    texts: int
    rates: tuple[tuple[float, int, Interval], ...]

    def plain(self) -> dict[str, Any]:
        """For a results file."""
        rates = [{"fpr": fpr, "keys": keys, "share": asdict(share)} for fpr, keys, share in self.rates]
        return asdict(self) | {"rates": rates}


@dataclass(frozen=True, slots=True)
class NullRow:
    """Wrong keys tried on texts, each tested by itself: rates over the promised one, for each of `LEVELS`."""

    reader: str
    texts: int
    keys: int
    hits: tuple[int, ...]
    of_promise: tuple[Interval, ...]


def measure_found(
    documents: Sequence[Document],
    tokenizer: TextTokenizer,
    readers: Mapping[str, KnownReadings],
    wrong_keys: int,
    wrong_texts: int,
) -> tuple[list[FoundRow], list[NullRow]]:
    """A row for each kind of documents and reader, of those that it has read; and wrong keys."""
    rows, nulls = [], []
    ids = [
        [np.array(tokenizer.encode(text), dtype=np.int64) for text, _ in document.messages]
        for document in documents
    ]
    for name, known in {NOBODY: None, **readers}.items():
        readings = [
            [None if known is None else known.of(text, tokenizer) for text, _ in one.messages]
            for one in documents
        ]
        has = [number for number in range(len(ids)) if known is None or None not in readings[number]]
        kinds = groups(has, lambda number: (documents[number].tokens, documents[number].change))
        for (tokens, change), of in kinds.items():
            asked = [(documents[number], ids[number], readings[number]) for number in of]
            rates = [
                (fpr, count, _share([_is_found(*one, fpr, count) for one in asked]))
                for fpr, count in product(FPRS, KEYS)
            ]
            rows.append(FoundRow(name, change, tokens, len(of), tuple(rates)))
        if wrong_keys:
            chosen = [
                has[place] for place in np.linspace(0, len(has) - 1, min(wrong_texts, len(has))).astype(int)
            ]
            texts = [(ids[number][0], readings[number][0]) for number in chosen]
            nulls.append(_nulls(name, texts, wrong_keys))
    return rows, nulls


def _is_found(
    document: Document,
    ids: Sequence[NDArray[np.int64]],
    readings: Sequence[Reading | None],
    rate: float,
    keys: int,
) -> bool:
    if not document.later:
        return is_found(bytes.fromhex(document.key), ids[0], readings[0], rate / keys)
    own = dict.fromkeys(bytes.fromhex(key) for _, key in document.messages)
    others = (prf_key(0, "another", number) for number in range(max(keys, POOL) - len(own)))
    return conversation_is_found([*own, *others], ids, readings, rate)


def conversation_is_found(
    keys: Sequence[bytes],
    ids: Sequence[NDArray[np.int64]],
    readings: Sequence[Reading | None],
    rate: float,
) -> bool:
    """Whether the service finds messages by E, its mean over the keys message by message."""
    plain = detect_conversation(WATERMARK, keys, ids).grown
    if None not in readings:
        read = detect_conversation(WATERMARK, keys, ids, readings=readings).grown
        plain = np.log10(FIRST * 10.0**plain + SECOND * 10.0**read)
    return float(plain.max()) >= -math.log10(rate)


def is_found(key: bytes, ids: NDArray[np.int64], reading: Reading | None, rate: float) -> bool:
    """Whether the service finds a document at a rate; where a model read it, by either step's share."""
    if reading is None:
        return _within(key, ids, None, rate)
    return _within(key, ids, reading, rate * SECOND) or _within(key, ids, None, rate * FIRST)


def _within(key: bytes, ids: NDArray[np.int64], reading: Reading | None, rate: float) -> bool:
    """By 1 / E where that is enough; it is not below a p-value that is drawn for."""
    ways: tuple[Sharp, ...] = ("never", "where_it_matters")
    tests = (
        LikelihoodTest(WATERMARK, ids, rate=rate, reading=reading, sharp=way, secret=SECRET) for way in ways
    )
    return any(test.under([key]).log10_p <= math.log10(rate) for test in tests)


def _nulls(name: str, texts: Sequence[tuple[NDArray[np.int64], Reading | None]], wrong_keys: int) -> NullRow:
    hits = np.zeros((len(LEVELS), len(texts)), dtype=np.int64)
    for number, (ids, reading) in enumerate(texts):
        keys = [prf_key(0, "wrong", number, count) for count in range(wrong_keys)]
        plain = LikelihoodTest(WATERMARK, ids, reading=reading, sharp="never", secret=SECRET).under(keys)
        for place, level in enumerate(LEVELS):
            near = np.flatnonzero(plain.of_keys >= gate(-math.log10(level)))
            test = LikelihoodTest(WATERMARK, ids, rate=level, reading=reading, secret=SECRET)
            found = test.under([keys[one] for one in near.tolist()]).p_of_keys if near.size else np.empty(0)
            hits[place, number] = np.count_nonzero(found <= math.log10(level))
    rates = tuple(_of_promise(of, wrong_keys, level) for of, level in zip(hits, LEVELS, strict=True))
    return NullRow(name, len(texts), wrong_keys, tuple(hits.sum(axis=1).tolist()), rates)


def _of_promise(hits: NDArray[np.int64], keys: int, level: float) -> Interval:
    total = int(hits.sum())
    rate = mean(hits / keys) if total >= MANY else clopper_pearson(total, hits.size * keys)
    return Interval(rate.estimate / level, rate.low / level, rate.high / level)


def _share(hits: Sequence[bool]) -> Interval:
    return clopper_pearson(sum(hits), len(hits))


def tables(rows: Sequence[FoundRow], nulls: Sequence[NullRow]) -> tuple[Table, ...]:
    """What is found by each reader, and false positives if wrong keys were tried."""
    columns = {
        f"{rate_name(fpr)}, {keys} key{'s' * (keys > 1)}": partial(_found, place)
        for place, (fpr, keys) in enumerate(product(FPRS, KEYS))
    }
    found = table_by(
        "Marked answers that are found, gumbel, r 2, H 2",
        sorted(rows, key=lambda row: (row.change, row.tokens)),
        {
            "text": lambda row: row.change,
            "tokens": lambda row: row.tokens or "any",
            "reader": lambda row: row.reader,
            "texts": lambda row: row.texts,
            **columns,
        },
        (
            "Read from their words, without the prompt. Tokens: of the answer before the change. P-values are"
            " multiplied by the number of keys. With a reader they are those of a caller who asks for the"
            " full answer: the test without it has a tenth of the rate.",
            "Of a conversation E is the mean over the keys of its pool (4 for 1 key), message by message.",
            "Of the edited texts one third each has words substituted, deleted and inserted. 95 % intervals.",
        ),
    )
    if not nulls:
        return (found,)
    wrong = table_by(
        "Wrong keys: rates over the promised ones",
        nulls,
        {
            "reader": lambda row: row.reader,
            "texts": lambda row: row.texts,
            "keys each": lambda row: f"{row.keys:,}",
            **{rate_name(level): partial(_wrong, place) for place, level in enumerate(LEVELS)},
        },
        (
            "Each test by itself at the whole rate. 95 % intervals: over texts, whose keys share their draws;"
            f" Clopper-Pearson where fewer than {MANY} are found.",
        ),
    )
    return found, wrong


def _found(place: int, row: FoundRow) -> str:
    return row.rates[place][2].percent()


def _wrong(place: int, row: NullRow) -> str:
    return f"{row.of_promise[place]}, {row.hits[place]} found"
