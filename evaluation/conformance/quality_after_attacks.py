"""What an attack leaves of a text for its reader: words, meaning (a small encoder), perplexity (a model)."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

from ttmark.evaluation.intervals import Interval, mean
from ttmark.evaluation.run_folder import Questions
from ttmark.shared.tokenization import TextTokenizer

_MOST_TOKENS = 256
"""What the encoder reads of a text, as its makers say."""


@dataclass(frozen=True, slots=True)
class QualityLeft:
    """Means over texts, with intervals.

    Attributes:
        words: share of the words that are left in their order.
        similarity: cosine of the encoder's vectors of the text before and after; None: not measured.
        perplexity: exp of the mean of the texts' nats per token; None: not measured.
    """

    words: Interval
    similarity: Interval | None
    perplexity: Interval | None


@dataclass(frozen=True, slots=True)
class QualityChange:
    """Compares texts before and after an attack.

    Attributes:
        seen: a text as its reader sees it, without what is invisible.
        similarity: questions about the text before; None: there is no encoder.
        nats: per token of a text; None: there is no model that judges.
        compared: texts whose similarity is measured, at most.
        judged: texts whose perplexity is measured, at most.
    """

    seen: Callable[[str], str]
    similarity: Questions[str] | None
    nats: Questions[None] | None
    compared: int
    judged: int

    def kept(self, title: str, before: Sequence[str], after: Sequence[str]) -> QualityLeft:
        old, new = [[self.seen(text) for text in texts] for texts in (before, after)]
        similarity = perplexity = None
        if self.similarity is not None:
            asked = [
                (_digest(text), text, other)
                for text, other in list(zip(old, new, strict=True))[: self.compared]
            ]
            similarity = mean(self.similarity.answers(f"{title}: meaning", asked))
        if self.nats is not None:
            asked_of = [("nats", None, text) for text in new[: self.judged]]
            nats = mean(self.nats.answers(f"{title}: perplexity", asked_of))
            ends = np.exp([nats.estimate, nats.low, nats.high]).tolist()
            perplexity = Interval(*ends)
        words = mean(np.array([words_kept(*pair) for pair in zip(old, new, strict=True)]))
        return QualityLeft(words, similarity, perplexity)


def quality(
    work: Path,
    seen: Callable[[str], str],
    encoder: Path | None,
    judge: Path | None,
    compared: int,
    judged: int,
    progress: Progress,
) -> QualityChange:
    """With the folders of an encoder (as all-MiniLM-L6-v2's) and of a causal language model, if any."""
    similarity = nats = None
    if encoder is not None:
        similarity = Questions(work, _cosines(encoder), progress, "similarity.jsonl")
    if judge is not None:
        nats = Questions(work, nats_of(judge), progress, "perplexity.jsonl")
    return QualityChange(seen, similarity, nats, compared, judged)


def words_kept(before: str, after: str) -> float:
    """Share of the words of `before` that `after` still has in the same order, by matching runs."""
    words = before.split()
    if not words:
        return 1.0
    runs = SequenceMatcher(None, words, after.split(), autojunk=False).get_matching_blocks()
    return sum(run.size for run in runs) / len(words)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _cosines(folder: Path) -> Callable[[str, Sequence[str]], list[float]]:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()

    @lru_cache(maxsize=1_000)
    def vector(text: str) -> "torch.Tensor":
        return vectors([text])[0]

    @torch.inference_mode()
    def vectors(texts: Sequence[str]) -> "torch.Tensor":
        fed = tokenizer(
            list(texts), padding=True, truncation=True, max_length=_MOST_TOKENS, return_tensors="pt"
        )
        states = model(**fed).last_hidden_state  # [texts, tokens, width]
        mask = fed["attention_mask"][..., None]
        pooled = (states * mask).sum(1) / mask.sum(1)
        return torch.nn.functional.normalize(pooled, dim=-1)

    def cosines(before: str, texts: Sequence[str]) -> list[float]:
        values: list[float] = (vectors(texts) @ vector(before)).tolist()
        return values

    return cosines


def nats_of(folder: Path) -> Callable[[None, Sequence[str]], list[float]]:
    """The mean surprise of the tokens of texts under the causal language model in a folder, in its type."""
    from ttmark.evaluation.engine_source import CausalModel, log_likelihood

    model, tokenizer = CausalModel(str(folder), "auto"), TextTokenizer.load(folder)

    def nats(_: None, texts: Sequence[str]) -> list[float]:
        """Of every token but the first; 0 for a text that has no other."""
        ids = [tokenizer.encode(text) for text in texts]
        return [
            -float(log_likelihood(model, one[:1], one[1:]).mean()) if len(one) > 1 else 0.0 for one in ids
        ]

    return nats
