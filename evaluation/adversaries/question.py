"""The question of `/v1/detect`, as an attacker of one text asks it: verdict, p-value, or score by score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.readings import Readings
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark import Watermark, corrected, detect_direct
from ttmark.shared.watermark.detectors.aligned import BETA, aligned_null
from ttmark.shared.watermark.detectors.alignment import aligned_score, alignment_path
from ttmark.shared.watermark.detectors.combined import Shares
from ttmark.shared.watermark.detectors.localized import localized_evidence, segment_null
from ttmark.shared.watermark.detectors.positions import position_scores
from ttmark.shared.watermark.detectors.segments import log10_expected

Tokens = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Question:
    """What the detection says of texts under the keys of one key version.

    Attributes:
        keys: the PRF keys of the version's pool, all of which are tried.
    """

    watermark: Watermark
    keys: tuple[bytes, ...]
    tokenizer: TextTokenizer
    readings: Readings

    def log10_p(self, text: str) -> float:
        """log10 of the p-value, corrected for detectors, boundaries, keys and readings."""
        readings = self.readings(text)
        tries = len(readings) * len(self.keys)
        found = [self._log10_p(key, self._tokens(one)) for one in readings for key in self.keys]
        return corrected(min(found), tries)

    def keys_found(self, text: str, fpr: float) -> int:
        """How many keys of the pool reach `fpr`, each by itself, as the text was sent; corrected for all."""
        tokens = self._tokens(text)
        limit = math.log10(fpr) - math.log10(len(self.keys))
        return sum(self._log10_p(key, tokens) <= limit for key in self.keys)

    def heat(self, text: str) -> NDArray[np.float64]:
        """The score of the block that holds each token, as `evidence: blocks` shows it; 0 outside [tokens].

        The blocks are those of the best alignment, under the first key.
        """
        tokens = self._tokens(text)
        heat = np.zeros(tokens.size)
        scores = position_scores(self.watermark, self.keys[0], tokens)
        if scores.size:
            path = alignment_path(scores, self.watermark.block_size, BETA)
            for place in range(self.watermark.block_size):
                heat[path + self.watermark.context_width + place] = scores[path]
        return heat

    def _tokens(self, text: str) -> Tokens:
        return np.array(self.tokenizer.encode(text), dtype=np.int64)

    def _log10_p(self, key: bytes, tokens: Tokens) -> float:
        phases = [
            detect_direct(self.watermark, key, tokens, phase=phase).log10_p
            for phase in range(self.watermark.block_size)
        ]
        scores = position_scores(self.watermark, key, tokens)
        if not scores.size:
            return Shares.of(len(phases)).log10_p(phases, 0.0, 0.0)
        alignments = aligned_null(self.watermark, key, tokens, scores.size, BETA)
        aligned = alignments.log10_p(aligned_score(scores, self.watermark.block_size, BETA))
        segments = segment_null(self.watermark, "scan", key, tokens, scores.size)
        found = localized_evidence(self.watermark, tokens, scores, "scan", -math.inf, segments)
        # As an E-value: a document is found by its passages exactly where one of them is.
        localized = log10_expected(found.log10_p)
        return Shares.of(len(phases)).log10_p(phases, aligned, localized)


def word_heat(question: Question, words: Sequence[str]) -> NDArray[np.float64]:
    """The heat of a text's words [words]: the sum over the tokens that end in each."""
    text = "".join(words)
    ends = np.cumsum([len(word) for word in words])
    spans = question.tokenizer.encode_with_offsets(text).offsets
    owner = np.searchsorted(ends, [max(0, end - 1) for _, end in spans], side="right")
    heat = np.zeros(len(words))
    np.add.at(heat, np.minimum(owner, len(words) - 1), question.heat(text))
    return heat
