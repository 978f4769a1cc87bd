"""The question of `/v1/detect`, as an attacker of one text asks it: verdict, p-value, or score by score."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.readings import Readings
from ttmark.shared.schemas.detection import DEFAULT_FPR
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark import Watermark, corrected
from ttmark.shared.watermark.detectors.aligned import BETA
from ttmark.shared.watermark.detectors.alignment import alignment_path
from ttmark.shared.watermark.detectors.positions import position_scores
from ttmark.shared.watermark.likelihood.evidence import detect_likelihood

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
        """log10 of the p-value, corrected for keys and readings.

        It is always drawn for, so that one figure serves all rates. The service leaves those at 1 / E that
        are far from the rate which it was asked for.
        """
        readings = self.readings(text)
        count = len(readings)
        asked = [
            detect_likelihood(
                self.watermark, self.keys, self._tokens(one), rate=DEFAULT_FPR / count, sharp="always"
            )
            for one in readings
        ]
        return corrected(min(one.log10_p for one in asked), count)

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


def word_heat(question: Question, words: Sequence[str]) -> NDArray[np.float64]:
    """The heat of a text's words [words]: the sum over the tokens that end in each."""
    text = "".join(words)
    ends = np.cumsum([len(word) for word in words])
    spans = question.tokenizer.encode_with_offsets(text).offsets
    owner = np.searchsorted(ends, [max(0, end - 1) for _, end in spans], side="right")
    heat = np.zeros(len(words))
    np.add.at(heat, np.minimum(owner, len(words) - 1), question.heat(text))
    return heat
