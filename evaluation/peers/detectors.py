"""What says whether a text is marked: the readers of each system, with exact p-values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.experiment_cells import Cell
from ttmark.evaluation.intervals import Sample
from ttmark.evaluation.peers.systems import System
from ttmark.shared.watermark import detect_direct
from ttmark.shared.watermark.likelihood.evidence import detect_likelihood

Document = tuple[bytes, NDArray[np.int64]]
"""The key that a text was written with, and its tokens."""


class Detector(Protocol):
    """The detector of one system."""

    def log10_p(self, documents: Sequence[Document], *, edited: bool) -> Sample:
        """Of each document under its own key."""
        ...


@dataclass(frozen=True, slots=True)
class Ours:
    """Direct detection of whole texts; of edited ones the question that the service asks."""

    cell: Cell

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

    def log10_p(self, documents: Sequence[Document], *, edited: bool) -> Sample:  # noqa: ARG002
        marks = [self.system.mark(key, self.vocabulary) for key, _ in documents]
        return np.array(
            [mark.detect(tokens).log10_p for mark, (_, tokens) in zip(marks, documents, strict=True)]
        )
