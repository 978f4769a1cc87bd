"""`python -m tests.harness.joined_answers`: how often the share's interval holds in joined answers."""

import gzip
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.unit.detect_service.held_keys import held
from ttmark.detect_service.detectors import likelihood
from ttmark.detect_service.passages import marked_passages
from ttmark.detect_service.verdict import FoundSegment, best_finding
from ttmark.evaluation.intervals import clopper_pearson
from ttmark.evaluation.report import Result, Table
from ttmark.evaluation.run_manifest import machine, versions
from ttmark.shared.keys.held_keys import UnlockedKey
from ttmark.shared.schemas.detection.detect import MarkedShare
from ttmark.shared.watermark.schemes.watermark import Watermark

ANSWERS = Path(__file__).parents[2] / "docs/results/found-read-answers.jsonl.gz"
LOG10_FPR = -5.0
Tokens = NDArray[np.int64]
Part = tuple[Tokens, bool]


class Joined(NamedTuple):
    """A text of which answers under three keys of a pool are marked; those of a fourth key are others'."""

    tokens: Tokens
    marked: NDArray[np.bool_]
    pool: tuple[bytes, ...]


class Found(NamedTuple):
    marked: NDArray[np.bool_]
    passages: tuple[FoundSegment, ...]
    share: MarkedShare

    @property
    def holds(self) -> bool:
        return self.share.low <= float(self.marked.mean()) <= self.share.high


class Answers:
    """Answers by key; texts are joined from them with the randomness of a seed."""

    def __init__(self, seed: int) -> None:
        self._of: dict[str, list[Tokens]] = {}
        for row in map(json.loads, gzip.decompress(ANSWERS.read_bytes()).splitlines()):
            ids = np.array([token for token in row["ids"] if token != 2])  # the end of the text
            if ids.size >= 60:
                self._of.setdefault(row["prf_key"], []).append(ids)
        self._generator = np.random.default_rng(seed)

    def joined(self, kind: str) -> Joined:
        *keys, foreign = self._generator.permutation(sorted(self._of)).tolist()

        def answer(number: int) -> Part:
            return self._one(keys[number]), True

        def others(tokens: int) -> Part:
            parts = [self._one(foreign) for _ in range(1 + tokens // 60)]
            return np.concatenate(parts)[:tokens], False

        parts = KINDS[kind](answer, others)
        marked = np.concatenate([np.full(tokens.size, own) for tokens, own in parts])
        tokens = np.concatenate([tokens for tokens, _ in parts])
        return Joined(tokens, marked, tuple(map(bytes.fromhex, keys)))

    def _one(self, key: str) -> Tokens:
        return self._of[key][self._generator.integers(len(self._of[key]))]

    def found(self, kind: str, count: int) -> Iterator[Found]:
        """What is said of those of so many texts that are found at 1e-5, without a reader."""
        look = likelihood(LOG10_FPR, b"", lambda _: None)
        for one in (self.joined(kind) for _ in range(count)):
            key = held(Watermark("gumbel", 2, 2), one.pool)
            read = partial(_read, one.tokens)
            finding = best_finding(read, [(key, key.versions[0])], look)
            if finding is not None and finding.log10_p <= LOG10_FPR:
                yield Found(one.marked, *marked_passages(finding, read, lambda _: None))


def _read(tokens: Tokens, _: UnlockedKey) -> Tokens:
    return tokens


def _edited(answer: Part) -> Part:
    tokens = answer[0].copy()
    tokens[5::10] += 1  # other tokens, at even distances
    return tokens, True


def _in_turns(answer: Part, others: Callable[[int], Part]) -> list[Part]:
    starts = range(0, answer[0].size - 39, 40)
    return [part for at in starts for part in ((answer[0][at : at + 40], True), others(40))]


KINDS: dict[str, Callable[[Callable[[int], Part], Callable[[int], Part]], list[Part]]] = {
    "one answer": lambda answer, _: [answer(0)],
    "one answer, then 300 of others": lambda answer, others: [answer(0), others(300)],
    "300 of others, then one answer": lambda answer, others: [others(300), answer(0)],
    "three answers of one key, 150 of others around each": lambda answer, others: [
        *[part for _ in range(3) for part in (others(150), answer(0))],
        others(150),
    ],
    "answers of two keys": lambda answer, _: [answer(0), answer(1)],
    "answers of three keys": lambda answer, _: [answer(0), answer(1), answer(2)],
    "answers of three keys, one token in ten changed": lambda answer, _: [
        _edited(answer(number)) for number in range(3)
    ],
    "answers of three keys, 100 of others around each": lambda answer, others: [
        *[part for number in range(3) for part in (others(100), answer(number))],
        others(100),
    ],
    "two answers of each of three keys": lambda answer, _: [answer(at % 3) for at in range(6)],
    "40 of an answer, 40 of others, in turn": lambda answer, others: [
        *_in_turns(answer(0), others),
        *_in_turns(answer(0), others),
    ],
}


def measured(count: int) -> Result:
    """How often the truth lies in the interval, and what passages hold, of so many texts of each kind."""
    shares, passages = [], []
    for kind in KINDS:
        found = list(Answers(1).found(kind, count))
        held_it = sum(one.holds for one in found)
        width = np.mean([one.share.high - one.share.low for one in found])
        rate = clopper_pearson(held_it, len(found)).percent()
        shares.append((kind, str(count), str(len(found)), rate, f"{width:.2f}"))
        listed = [(one.marked[at.start : at.end], at.log10_e) for one in found for at in one.passages]
        within = sum(log10_e <= LOG10_FPR for _, log10_e in listed)
        unmarked = sum(not marked.any() for marked, _ in listed)
        passages.append((kind, str(len(listed)), str(within), str(unmarked)))
    columns = "text, in tokens", "texts", "found", "held the truth", "mean width"
    truth = "The truth is the share of the tokens that belongs to answers, unmarked openings included."
    tables = (
        Table("Intervals of 95 % for the marked share", columns, tuple(shares), (truth,)),
        Table(
            "Passages with an E-value of 1 or less",
            ("text, in tokens", "passages", "within the rate", "without a marked token"),
            tuple(passages),
        ),
    )
    return Result("shares", "python -m tests.harness.joined_answers", tables, (), machine(), versions())


if __name__ == "__main__":
    found = measured(100)
    (ANSWERS.parent / "shares.json").write_bytes(found.json())
    print(found.markdown())
