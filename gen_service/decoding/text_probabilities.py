"""A text that the model reads: how likely it finds each token."""

import numpy as np
import torch

from ttmark.gen_service.decoding.errors import SequenceFailed
from ttmark.gen_service.decoding.filters import filter_rows
from ttmark.gen_service.decoding.penalties import LogitAdjustments, TokenCounts
from ttmark.gen_service.decoding.request import ReadingRequest

ROWS = 64
"""Tokens of a text that are read in one pass: logits of more are never held for one text."""


class TextProbabilities:
    """Probabilities of a text's tokens after the repetition penalty and the filters, as far as it is read.

    Attributes:
        values: [tokens]; 1 where nothing stands before.
    """

    def __init__(self, request: ReadingRequest) -> None:
        self.values = np.ones(len(request.text_ids))
        self._request = request
        self._adjustments = LogitAdjustments(repetition=request.repetition_penalty)

    def take(self, first: int, logits: torch.Tensor) -> None:
        """Reads `logits` [rows, vocab] of the tokens from number `first` on, whatever was read before.

        Raises:
            SequenceFailed: they are not finite.
        """
        text = self._request.text_ids
        if self._adjustments.active:
            logits = logits.clone()
            before = TokenCounts(self._request.prompt_ids, text[:first])
            for row, token in zip(logits, text[first:], strict=False):
                self._adjustments.apply(row[None], before, [()])
                before.add(token)
        supports = filter_rows(logits, [self._request.filters] * len(logits))
        for index, support in enumerate(supports, first):
            if support is None:
                raise SequenceFailed("the model gave logits that are not finite")
            self.values[index] = support.probability(text[index])
