"""Our attention as transformers' models call it: registered with `AttentionInterface`, once per layer.

The plan of the pass comes through the model as a keyword.
"""

from typing import Any

import torch
from transformers import AttentionInterface

from ttmark.gen_service.engine.attention import AttentionPlan, attend

ATTENTION_NAME = "ttmark_ragged"


def register_attention() -> None:
    """Makes the attention function known to transformers; doing it twice does no harm."""
    AttentionInterface.register(ATTENTION_NAME, ragged_attention)


def ragged_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float | None = None,
    sliding_window: int | None = None,
    attention_plan: AttentionPlan,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of one layer: query [1, heads, rows, dim], key and value [1, kv_heads, rows, dim].

    Returns [1, rows, heads, dim].

    Raises:
        NotImplementedError: the model asks for a mask or a variant (soft capping, sinks) of its own.
    """
    if attention_mask is not None:
        raise NotImplementedError("a mask of the model's own")
    for name in ("softcap", "s_aux"):
        if options.get(name) is not None:
            raise NotImplementedError(f"attention option {name}")
    if key.shape != value.shape:
        raise NotImplementedError("values of another size than keys")
    out = attend(
        attention_plan,
        _layer_index(module),
        query[0].transpose(0, 1).contiguous(),
        torch.stack((key[0], value[0])).permute(2, 0, 1, 3),
        scale=query.shape[-1] ** -0.5 if scaling is None else scaling,
        window=sliding_window,
    )
    return out.view(1, query.shape[2], query.shape[1], -1), None


def _layer_index(module: torch.nn.Module) -> int:
    index = module.layer_idx
    if not isinstance(index, int):
        raise NotImplementedError("attention module without a layer index")
    return index
