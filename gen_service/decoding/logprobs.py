"""How likely the model finds tokens: those that it wrote, and those of a text that it reads."""

import math
from collections.abc import Mapping

import numpy as np
import torch

from ttmark.gen_service.decoding.filtered_tokens import FilterParams
from ttmark.gen_service.decoding.filters import filter_rows
from ttmark.gen_service.decoding.logit_processors import LogitAdjustments, TokenCounts
from ttmark.gen_service.decoding.request import ReadingRequest, SequenceFailed, TokenLogprob


def block_logprobs(
    logits: Mapping[tuple[int, ...], torch.Tensor], tokens: tuple[int, ...], top: int
) -> tuple[TokenLogprob, ...]:
    """Log probability of each token of a block, from the `logits` [vocab] after the tokens before it."""
    return tuple(
        TokenLogprob(token, *token_logprob(logits[tokens[:depth]], token, top))
        for depth, token in enumerate(tokens)
    )


def token_logprob(row: torch.Tensor, token: int, top: int) -> tuple[float, tuple[tuple[int, float], ...]]:
    """Log probability of `token` under the logits `row` [vocab], and the `top` likeliest as (id, logprob)."""
    logprobs = torch.log_softmax(row.float(), dim=0)
    best = torch.topk(logprobs, min(top, logprobs.shape[0]))
    alternatives = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return float(logprobs[token]), tuple(alternatives)


ROWS = 64
"""Tokens of a text whose logits are looked at together."""

_AS_IT_IS = FilterParams()


class TextLogprobs:
    """Log-probabilities (nats) of a text's tokens after the repetition penalty and the filters, so far.

    Attributes:
        values: [tokens]; 0 where nothing stands before, minus infinity where the filters leave a token out.
    """

    def __init__(self, request: ReadingRequest) -> None:
        self.values = np.zeros(len(request.text_ids))
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
        read = self._plain if self._request.filters == _AS_IT_IS else self._filtered
        values = read(logits, text[first : first + len(logits)])
        if any(map(math.isnan, values)):
            raise SequenceFailed("the model gave logits that are not finite")
        self.values[first : first + len(logits)] = values

    def _plain(self, logits: torch.Tensor, tokens: tuple[int, ...]) -> list[float]:
        """In log space, so that nothing is too unlikely to be told; a row at a time, whatever the others."""
        found = []
        for row, token in zip(logits, tokens, strict=True):
            wide = row.double()
            total = torch.logsumexp(wide, dim=0)
            found.append(wide[token] - total + 0.0 * total)  # NaN where a logit is infinite
        values: list[float] = torch.stack(found).tolist() if found else []
        return values

    def _filtered(self, logits: torch.Tensor, tokens: tuple[int, ...]) -> list[float]:
        supports = filter_rows(logits, [self._request.filters] * len(logits))
        return [
            math.nan if support is None else _log(support.probability(token))
            for support, token in zip(supports, tokens, strict=True)
        ]


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf
