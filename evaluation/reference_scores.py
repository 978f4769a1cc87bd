"""Quality of texts against references: ROUGE, BLEU and BERTScore."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import orjson

from ttmark.evaluation.intervals import Interval, Sample, mean
from ttmark.evaluation.report.result import Table, groups, table_by

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
    systems = groups(pairs, lambda pair: pair.system)
    return [_score(name, of_system, bert_score) for name, of_system in systems.items()]


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
