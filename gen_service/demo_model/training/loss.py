"""Next-token cross-entropy that never holds the whole logits matrix."""

from typing import Any

import torch
from torch import Tensor

_ROWS = 512


class ChunkedCrossEntropy(torch.autograd.Function):
    """Mean cross-entropy of `hidden @ embedding.T` against `targets`, gradients computed chunk by chunk.

    A chunk of logits stays in the processor's cache from the product to its softmax to both gradients; the
    softmax is in fp32 whatever the weights' type.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, embedding: Tensor, targets: Tensor) -> Tensor:
        # hidden [rows, width], embedding [vocab, width], targets [rows]
        hidden_gradient = torch.empty_like(hidden)
        embedding_gradient = torch.zeros_like(embedding, dtype=torch.float32)
        total = torch.zeros(())
        for start in range(0, len(targets), _ROWS):
            rows = slice(start, start + _ROWS)
            log_probabilities = (hidden[rows] @ embedding.T).float().log_softmax(-1)  # [chunk, vocab]
            index = targets[rows, None]
            total -= log_probabilities.gather(1, index).sum()
            gradient = log_probabilities.exp_()
            gradient.scatter_add_(1, index, torch.full_like(index, -1, dtype=torch.float32))
            gradient = gradient.to(hidden.dtype)
            hidden_gradient[rows] = gradient @ embedding
            embedding_gradient += gradient.T @ hidden[rows]
        ctx.save_for_backward(hidden_gradient / len(targets), embedding_gradient / len(targets))
        return total / len(targets)

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor, Tensor, None]:
        hidden_gradient, embedding_gradient = ctx.saved_tensors
        return hidden_gradient * outputs[0], embedding_gradient.to(hidden_gradient.dtype) * outputs[0], None


def next_token_loss(hidden: Tensor, embedding: Tensor, ids: Tensor) -> Tensor:
    """Mean loss in nats of predicting each of `ids` [rows, length] from the hidden state before it."""
    return ChunkedCrossEntropy.apply(  # type: ignore[no-untyped-call, no-any-return]
        hidden[:, :-1].reshape(-1, hidden.shape[-1]), embedding, ids[:, 1:].reshape(-1)
    )
