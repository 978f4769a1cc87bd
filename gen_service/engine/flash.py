"""Attention with its log-sum-exp, by which parts of an attention are put together."""

from collections.abc import Callable

import torch
from torch.nn import functional

_LANES = 32  # floats that torch's vectorised loops take at once, at most
_PARALLEL_ELEMENTS = 32768  # from here on torch splits an elementwise operation between threads
_MAX_THREADS = 16


def aligned(function: Callable[..., torch.Tensor], *arguments: torch.Tensor) -> torch.Tensor:
    """An elementwise function whose results do not depend on where in the tensors an element is.

    torch computes the last elements of a tensor, those that fill no vector register, by scalar code whose
    exponentials differ in the last bit. So the arguments, all of one shape, are filled up to whole registers.
    """
    size = arguments[0].numel()
    multiple = _LANES if size < _PARALLEL_ELEMENTS else _LANES * _MAX_THREADS
    padded = (functional.pad(argument.reshape(-1), (0, -size % multiple)) for argument in arguments)
    return function(*padded)[:size].view(arguments[0].shape)


def merge_sinks(
    out: torch.Tensor, lse: torch.Tensor, sinks: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """An attention and its log-sum-exp once its heads' sinks have had their share of the softmax.

    Args:
        out: [..., dim].
        lse: [...] float32.
        sinks: float32, of a shape that broadcasts to that of `lse`.
    """
    sinks = sinks.expand_as(lse)
    kept = out.float() * aligned(torch.sigmoid, lse - sinks)[..., None]
    return kept.to(out.dtype), aligned(torch.logaddexp, lse, sinks)


def attend_with_lse(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, mask: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention and its log-sum-exp: [spans, heads, n, dim] and [spans, heads, n] float32.

    Args:
        mask: added to the scores, [n, keys] or [spans, 1, n, keys].
    """
    if key.shape[2] == 0:
        return torch.zeros_like(query), query.new_full(query.shape[:3], -torch.inf, dtype=torch.float32)
    if query.device.type == "cpu":
        out, lse = flash_on_cpu(query, key, value, scale, mask=mask)
        return out, lse.float()
    return attend_portably(query, key, value, scale, mask)


def flash_on_cpu(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scale: float,
    *,
    mask: torch.Tensor | None = None,
    is_causal: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """torch's kernel for the CPU, which shares a KV head among query heads and returns the log-sum-exp."""
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(
        query, key, value, is_causal=is_causal, attn_mask=mask, scale=scale
    )
    return out, lse


def attend_portably(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scale: float,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same on devices whose kernels keep the log-sum-exp to themselves, in fp32."""
    scores = torch.matmul(query.float() * scale, key.float().transpose(2, 3))
    if mask is not None:
        scores = scores + mask
    lse = torch.logsumexp(scores, dim=-1)
    return torch.matmul(torch.exp(scores - lse[..., None]), value.float()).to(query.dtype), lse
