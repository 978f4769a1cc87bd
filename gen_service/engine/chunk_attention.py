"""Attention of consecutive tokens of one prompt: to all that is cached of it, and causally to themselves."""

from typing import NamedTuple

import torch
from torch.nn import functional

from ttmark.gen_service.engine.flash import attend_with_lse, flash_on_cpu, merge_sinks
from ttmark.gen_service.engine.kv_cache import Arena

_SCORES = 1 << 26  # that are kept at once where no kernel spares them: 0.25 GB


class Chunk(NamedTuple):
    """Rows [start, stop) of the pass are the tokens `position` and after of a sequence cached from `base`."""

    start: int
    stop: int
    base: int
    position: int


def attend_chunk(
    chunk: Chunk,
    query: torch.Tensor,
    arena: Arena,
    scale: float,
    window: int | None,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """Consecutive tokens of one prompt -> [rows, heads, dim]; for `sinks` see `attend`."""
    length = chunk.stop - chunk.start
    end = chunk.position + length
    first = 0 if window is None else max(0, chunk.position - window + 1)
    keys, values = (side.narrow(2, chunk.base + first, end - first) for side in (arena.keys, arena.values))
    rows = query[chunk.start : chunk.stop].transpose(0, 1)[None]
    unbounded = window is None or end <= window
    if unbounded and query.device.type == "cpu":
        out, lse = _attend_causally(rows, keys, values, scale)
        return (out if sinks is None else merge_sinks(out, lse, sinks[:, None])[0])[0].transpose(0, 1)
    groups = query.shape[1] // keys.shape[1]
    keys, values = (side.repeat_interleave(groups, dim=1) for side in (keys, values))
    if sinks is not None:
        sees = visible(chunk.position, end, first, window).to(query.device)
        return _attend_with_sinks(rows, keys, values, scale, sees, sinks)[0].transpose(0, 1)
    if unbounded and end == length:
        out = functional.scaled_dot_product_attention(rows, keys, values, is_causal=True, scale=scale)
    else:
        sees = visible(chunk.position, end, first, window).to(query.device)
        out = functional.scaled_dot_product_attention(rows, keys, values, attn_mask=sees, scale=scale)
    return out[0].transpose(0, 1)


def _attend_causally(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of the last tokens of a text [1, heads, n, dim] to all of it [1, kv_heads, length, dim].

    Returns it and its log-sum-exp [1, heads, n] float32. What lies before them is attended to without a mask,
    by all heads that share a key as rows of one, and merged in by log-sum-exp.
    """
    heads, count, dim = query.shape[1:]
    before = keys.shape[2] - count
    out, lse = flash_on_cpu(query, keys[:, :, before:], values[:, :, before:], scale, is_causal=True)
    if not before:
        return out, lse.float()
    packed = query.reshape(1, keys.shape[1], -1, dim)
    prefix, prefix_lse = flash_on_cpu(packed, keys[:, :, :before], values[:, :, :before], scale)
    own, seen = lse.float(), prefix_lse.reshape(1, heads, count).float()
    weight = torch.sigmoid(own - seen)[..., None]
    merged = torch.lerp(prefix.reshape(1, heads, count, dim).float(), out.float(), weight)
    return merged.to(query.dtype), torch.logaddexp(own, seen)


def _attend_with_sinks(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scale: float,
    sees: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    """Attention [1, heads, n, dim] of a few rows at a time, as a GPU keeps their scores in float32.

    Args:
        query: [1, heads, n, dim].
        keys, values: [1, heads, length, dim].
        sees: which keys each row sees [n, length].
        sinks: float32 [heads].
    """
    rows = max(1, _SCORES // (keys.shape[1] * keys.shape[2]))
    mask = torch.zeros(sees.shape, device=query.device).masked_fill_(~sees, -torch.inf)
    parts = [
        merge_sinks(*attend_with_lse(part, keys, values, scale, seen), sinks[:, None])[0]
        for part, seen in zip(torch.split(query, rows, 2), torch.split(mask, rows), strict=True)
    ]
    return torch.cat(parts, 2)


def visible(position: int, end: int, first: int, window: int | None) -> torch.Tensor:
    """True where the query at a position in [position, end) sees the key at one in [first, end)."""
    behind = torch.arange(position, end)[:, None] - torch.arange(first, end)
    seen = behind >= 0
    return seen if window is None else seen & (behind < window)
