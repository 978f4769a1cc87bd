"""Quality of texts: repetition and token distribution, and ROUGE, BLEU and BERTScore against references."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from ttmark.evaluation.intervals import Interval, Sample, mean
from ttmark.evaluation.report.result import Table, table_by

Tokens = Sequence[int]

LOOP_WINDOW = 8
LOOP_TIMES = 3


def until_end(tokens: Tokens, ends: Collection[int]) -> tuple[int, ...]:
    """The tokens up to and with the first of `ends`: what a generator that stops there gives."""
    first = next((place for place, token in enumerate(tokens) if token in ends), len(tokens))
    return tuple(tokens[: first + 1])


def distinct_n(tokens: Tokens, n: int) -> float:
    """Share of n-grams that are the first of their kind in the text; 1 for a text too short."""
    grams = ngrams(tokens, n)
    return len(set(grams)) / len(grams) if grams else 1.0


def has_loop(tokens: Tokens, window: int = LOOP_WINDOW, times: int = LOOP_TIMES) -> bool:
    """Whether some run of `window` tokens occurs at least `times` times."""
    counts = Counter(ngrams(tokens, window))
    return bool(counts) and max(counts.values()) >= times


def ngrams(tokens: Tokens, n: int) -> list[tuple[int, ...]]:
    """All n-grams in order."""
    return [tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1)]


def count_matrix(texts: Sequence[Tokens], columns: Sequence[int]) -> NDArray[np.float64]:
    """How often each of `columns` occurs in each text, and all other tokens last: [texts, columns + 1]."""
    place = {token: column for column, token in enumerate(columns)}
    counts = np.zeros((len(texts), len(columns) + 1))
    for row, tokens in enumerate(texts):
        for token in tokens:
            counts[row, place.get(token, len(columns))] += 1
    return counts


def total_variation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Total variation distance between two histograms."""
    return float(np.abs(first / first.sum() - second / second.sum()).sum() / 2)


def permutation_p(
    first: NDArray[np.float64], second: NDArray[np.float64], *, permutations: int = 2_000, seed: int = 0
) -> float:
    """p-value of the total variation distance between the token histograms of two groups of texts.

    Texts, not tokens, are exchanged between the groups, because the tokens of a text depend on each other.
    first, second: [texts, tokens] counts.
    """
    pooled = np.concatenate([first, second])
    total = pooled.sum(axis=0)
    observed = total_variation(first.sum(axis=0), second.sum(axis=0))
    generator = np.random.default_rng(seed)
    reached = 0
    for _ in range(permutations):
        group = pooled[generator.permutation(len(pooled))[: len(first)]].sum(axis=0)
        reached += total_variation(group, total - group) >= observed - 1e-12
    return (1 + reached) / (1 + permutations)


ROUGE = ("rouge1", "rouge2", "rougeL")


@dataclass(frozen=True, slots=True)
class Pair:
    """A text and what it should have been; `system` names who wrote it."""

    system: str
    candidate: str
    reference: str


@dataclass(frozen=True, slots=True)
class PairScores:
    """Means over the pairs of one system; BLEU is a figure of the whole corpus (sacrebleu, 0 to 100)."""

    system: str
    pairs: int
    rouge: dict[str, Interval]
    bleu: float
    bert_score: Interval | None


BertScore = Callable[[Sequence[str], Sequence[str]], Sample]
"""F1 of candidates against references; needs a model, which the user names."""


def read_pairs(path: Path) -> list[Pair]:
    """JSONL with `candidate`, `reference` and, if there are several, `system`.

    Raises:
        ValueError: a line lacks a field, or there is none.
    """
    pairs = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            record = orjson.loads(line)
            pairs.append(Pair(record.get("system", "texts"), record["candidate"], record["reference"]))
        except (orjson.JSONDecodeError, KeyError, AttributeError) as error:
            raise ValueError(
                f"{path}, line {number}: not an object with `candidate` and `reference`"
            ) from error
    if not pairs:
        raise ValueError(f"{path} holds no pair")
    return pairs


def score_pairs(pairs: Sequence[Pair], bert_score: BertScore | None = None) -> list[PairScores]:
    """Scores by system, in the order of their first pair."""
    systems = dict.fromkeys(pair.system for pair in pairs)
    return [_score(name, [p for p in pairs if p.system == name], bert_score) for name in systems]


def _score(system: str, pairs: Sequence[Pair], bert_score: BertScore | None) -> PairScores:
    # Optional: `--help` works without them.
    from rouge_score import rouge_scorer  # type: ignore[import-untyped]
    from sacrebleu.metrics.bleu import BLEU

    candidates = [pair.candidate for pair in pairs]
    references = [pair.reference for pair in pairs]
    scorer = rouge_scorer.RougeScorer(list(ROUGE), use_stemmer=True)
    found = [scorer.score(reference, text) for text, reference in zip(candidates, references, strict=True)]
    rouge = {name: mean(np.array([scores[name].fmeasure for scores in found])) for name in ROUGE}
    bleu = BLEU(effective_order=False).corpus_score(candidates, [references]).score
    bert = mean(bert_score(candidates, references)) if bert_score else None
    return PairScores(system, len(pairs), rouge, float(bleu), bert)


def bert_scorer(model: str) -> BertScore:
    """BERTScore with the optional package `bert-score` and a model of the user's.

    Raises:
        ValueError: the package is not installed.
    """
    try:
        package = import_module("bert_score")
    except ImportError as error:
        raise ValueError("BERTScore needs `pip install bert-score`") from error

    def scores(candidates: Sequence[str], references: Sequence[str]) -> Sample:
        _, _, f1 = package.score(list(candidates), list(references), model_type=model)
        values: Sample = f1.numpy().astype(np.float64)
        return values

    return scores


def pairs_table(scores: Sequence[PairScores]) -> Table:
    """One row per system."""
    return table_by(
        "Texts against references",
        scores,
        {
            "system": lambda row: row.system,
            "pairs": lambda row: row.pairs,
            "ROUGE-1": lambda row: row.rouge["rouge1"],
            "ROUGE-2": lambda row: row.rouge["rouge2"],
            "ROUGE-L": lambda row: row.rouge["rougeL"],
            "BLEU": lambda row: f"{row.bleu:.2f}",
            "BERTScore": lambda row: row.bert_score,
        },
        ("ROUGE and BERTScore: mean F1 with a 95 % interval; BLEU is a figure of the whole corpus.",),
    )
