"""What says whether a text is marked: the readers of each system, with exact p-values or measured ones."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.cells import Cell, prf_key
from ttmark.evaluation.intervals import Sample
from ttmark.evaluation.peers.bayesian import Bits
from ttmark.evaluation.peers.systems import LAYERS, NGRAM, System, words
from ttmark.shared.watermark import detect_direct
from ttmark.shared.watermark.foreign import SynthIdText
from ttmark.shared.watermark.likelihood.evidence import detect_likelihood

Document = tuple[bytes, NDArray[np.int64]]
"""The key that a text was written with, and its tokens."""


class Detector(Protocol):
    """A detector of one system."""

    @property
    def title(self) -> str: ...

    @property
    def least(self) -> float:
        """The smallest p-value that it can state; 0: any."""

    def log10_p(self, documents: Sequence[Document], *, edited: bool) -> Sample:
        """Of each document under its own key."""
        ...


@dataclass(frozen=True, slots=True)
class Ours:
    """Direct detection of whole texts; of edited ones the question that the service asks."""

    cell: Cell
    title: str = "exact"
    least: float = 0.0

    def log10_p(self, documents: Sequence[Document], *, edited: bool) -> Sample:
        watermark = self.cell.watermark()
        if edited:
            asked = [detect_likelihood(watermark, [key], tokens) for key, tokens in documents]
            return np.array([one.log10_p for one in asked])
        return np.array([detect_direct(watermark, key, tokens).log10_p for key, tokens in documents])


@dataclass(frozen=True, slots=True)
class Exact:
    """Another system's own score with the exact p-value of our reader."""

    system: System
    vocabulary: int
    title: str = "exact"
    least: float = 0.0

    def log10_p(self, documents: Sequence[Document], *, edited: bool) -> Sample:  # noqa: ARG002
        marks = [self.system.mark(key, self.vocabulary) for key, _ in documents]
        return np.array(
            [mark.detect(tokens).log10_p for mark, (_, tokens) in zip(marks, documents, strict=True)]
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """A score of SynthID-Text's bits; its p-value is the share of scores under other keys that reach it.

    Under a key that had no part in it a marked text is as good as an unmarked one, and it repeats itself as
    texts of its kind do.

    Attributes:
        score: of each text [texts].
        null_scores: how many scores under other keys there are at least, of all documents together.
    """

    title: str
    score: Callable[[Sequence[Bits]], Sample]
    null_scores: int
    seed: int

    @property
    def least(self) -> float:
        """Ten of the scores under other keys reach it."""
        return 10 / self.null_scores

    def log10_p(self, documents: Sequence[Document], *, edited: bool) -> Sample:  # noqa: ARG002
        places = [synthid(key).read(tokens).places for key, tokens in documents]
        own = self.score([synthid(key).bits(at) for (key, _), at in zip(documents, places, strict=True)])
        null = np.sort(np.concatenate(list(self._null(places))))
        reached = len(null) - np.searchsorted(null, own)
        return np.log10((1 + reached) / (1 + len(null)))

    def _null(self, places: Sequence[NDArray[np.int64]]) -> Iterator[Sample]:
        for number in range(math.ceil(self.null_scores / len(places))):
            keys = [prf_key(self.seed, "peers", number, row) for row in range(len(places))]
            yield self.score([synthid(key).bits(at) for key, at in zip(keys, places, strict=True)])


def synthid(key: bytes) -> SynthIdText:
    """The reader of the SynthID-Text that `systems` writes."""
    return SynthIdText(words(key, LAYERS), NGRAM)


def weighted_mean(texts: Sequence[Bits]) -> Sample:
    """The weighted mean score of the SynthID-Text paper: weights fall from 10 to 1 with the layers."""
    weights = np.linspace(10.0, 1.0, LAYERS)
    return np.array([float((bits @ weights).mean()) if len(bits) else -math.inf for bits in texts])
