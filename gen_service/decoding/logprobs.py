"""Log probabilities of the model's own distribution: no filter, no penalty, temperature 1."""

from collections.abc import Mapping

import torch

from ttmark.gen_service.decoding.request import TokenLogprob


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
