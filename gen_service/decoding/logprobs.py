"""Log probabilities of the model's own distribution: no filter, no penalty, temperature 1."""

import torch


def token_logprob(row: torch.Tensor, token: int, top: int) -> tuple[float, tuple[tuple[int, float], ...]]:
    """Log probability of `token` under the logits `row` [vocab], and the `top` likeliest as (id, logprob)."""
    logprobs = torch.log_softmax(row.float(), dim=0)
    best = torch.topk(logprobs, min(top, logprobs.shape[0]))
    alternatives = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return float(logprobs[token]), tuple(alternatives)
