"""Our attention as transformers' models call it: registered with `AttentionInterface`, once per layer.

The plan of the pass comes through the model as a keyword.
"""

from typing import Any

import torch
from torch.nn import functional
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
    s_aux: torch.Tensor | None = None,
    attention_plan: AttentionPlan | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of one layer.

    Where keys and values differ in size, as in multi-head latent attention, the smaller are filled up with
    zeros: they add nothing to scores, and are cut off from what comes out.

    Args:
        query: [1, heads, rows, dim].
        key: [1, kv_heads, rows, dim].
        value: [1, kv_heads, rows, size].
        s_aux: the sinks of the layer's heads [heads], if it has them.

    Returns [1, rows, heads, size].

    Raises:
        NotImplementedError: the model asks for a mask or a variant (soft capping) of its own, or does not
            pass the plan on to its layers.
    """
    if attention_plan is None:
        raise NotImplementedError("its layers are not told what a pass computes")
    if attention_mask is not None:
        raise NotImplementedError("a mask of the model's own")
    if options.get("softcap") is not None:
        raise NotImplementedError("attention option softcap")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    size = value.shape[-1]
    if key.shape[-1] != size:
        query, key, value = _equally_large(query, key, value)
    out = attend(
        attention_plan,
        _layer_index(module),
        query[0].transpose(0, 1).contiguous(),
        torch.stack((key[0], value[0])).permute(2, 0, 1, 3),
        scale=scale,
        window=sliding_window,
        sinks=None if s_aux is None else s_aux.detach().float(),
    )
    return out.view(1, query.shape[2], query.shape[1], -1)[..., :size], None


def _equally_large(*parts: torch.Tensor) -> list[torch.Tensor]:
    """The parts [..., dim] with the largest of their sizes."""
    largest = max(part.shape[-1] for part in parts)
    return [functional.pad(part, (0, largest - part.shape[-1])) for part in parts]


def _layer_index(module: torch.nn.Module) -> int:
    index = module.layer_idx
    if not isinstance(index, int):
        raise NotImplementedError("attention module without a layer index")
    return index
