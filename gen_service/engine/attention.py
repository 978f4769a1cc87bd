"""Attention of one ragged forward pass over many sequences, with the KV cache beside the model.

Each sequence attends in a call of its own, whose shape depends on that sequence alone. Probed rows need no
mask: they attend to the prefix without causality, and the row itself and the few rows of the same pass that
are its ancestors are merged in by log-sum-exp, which is the paper's branch-isolating mask (Eq. 5) exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.nn import functional

from gen_service.engine.kv_cache import Arena, KvCache
from gen_service.engine.tree_attention import TreeAttention

_LANES = 32  # floats that torch's vectorised loops take at once, at most
_PARALLEL_ELEMENTS = 32768  # from here on torch splits an elementwise operation between threads
_MAX_THREADS = 16


class Span(NamedTuple):
    """Some rows of the pass, one sequence's, attend to the `length` cache rows from `first` on.

    Attributes:
        mask: added to their scores, [rows * query heads per KV head, length]; None is nothing.
    """

    rows: int
    first: int
    length: int
    mask: torch.Tensor | None = None


class Chunk(NamedTuple):
    """Rows [start, stop) of the pass are the tokens `position` and after of a sequence cached from `base`."""

    start: int
    stop: int
    base: int
    position: int


class Ancestors(NamedTuple):
    """Probed row `rows[i]` also attends to probed row `sources[i]`."""

    rows: torch.Tensor
    sources: torch.Tensor


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """What each row of a pass attends to.

    The rows are, in this order: prompt chunks (prefix and, causally, the chunk), committed tokens (likewise),
    probes (prefix, ancestors, self), padding (nothing).

    Attributes:
        cache: where keys and values live.
        slots: the cache rows that take the keys and values of the chunks and commits. They are written before
            anything is read, so a piece sees the pieces before it of the same pass.
        spans: of the commits and probes, by sliding window (None: full attention) and heads per KV head.
        probes: first probed row, and the row after the last.
        kernel: computes commits and probes in one launch per layer, where there is one.
    """

    cache: KvCache
    slots: torch.Tensor
    chunks: tuple[Chunk, ...]
    spans: Callable[[int | None, int], tuple[Span, ...]]
    probes: tuple[int, int]
    ancestors: tuple[Ancestors, ...]
    kernel: TreeAttention | None = None


def attend(
    plan: AttentionPlan,
    layer: int,
    query: torch.Tensor,
    key_value: torch.Tensor,
    *,
    scale: float,
    window: int | None = None,
) -> torch.Tensor:
    """Attention of one layer: query [rows, heads, dim], key_value [rows, 2, kv_heads, dim].

    Returns [rows, heads * dim].
    """
    arena = plan.cache.write(layer, plan.slots, key_value[: len(plan.slots)])
    parts = [_attend_chunk(chunk, query, arena, scale, window) for chunk in plan.chunks]
    first, last = (plan.chunks[-1].stop if plan.chunks else 0), plan.probes[1]
    if last > first and plan.kernel is not None:
        tree = slice(first, last)
        parts.append(plan.kernel(query[tree], key_value[tree], arena.rows, window, scale))
    elif last > first:
        parts.append(_attend_tree(plan, first, query, key_value, arena, scale, window))
    if len(query) > last:
        parts.append(query.new_zeros((len(query) - last, *query.shape[1:])))
    return (parts[0] if len(parts) == 1 else torch.cat(parts)).reshape(len(query), -1)


def _attend_tree(
    plan: AttentionPlan,
    first: int,
    query: torch.Tensor,
    key_value: torch.Tensor,
    arena: Arena,
    scale: float,
    window: int | None,
) -> torch.Tensor:
    """Rows from `first` up to the last probe -> [rows, heads, dim]."""
    last = plan.probes[1]
    rows, (heads, dim), kv_heads = last - first, query.shape[1:], key_value.shape[2]
    groups = heads // kv_heads
    # Heads that share a key lie side by side on the query axis: a prefix is read once per KV head.
    packed = query[first:last].view(rows, kv_heads, groups, dim).transpose(0, 1)
    packed = packed.reshape(1, kv_heads, rows * groups, dim)
    spans = plan.spans(window, groups)
    outs, lses = [], []
    for part, span in zip(
        packed.split_with_sizes([span.rows * groups for span in spans], 2), spans, strict=True
    ):
        keys = arena.keys.narrow(2, span.first, span.length)
        values = arena.values.narrow(2, span.first, span.length)
        out, lse = _attend(part, keys, values, scale, span.mask)
        outs.append(out)
        lses.append(lse)
    attended = torch.cat(outs, 2).view(kv_heads, rows, groups, dim).transpose(0, 1)
    if plan.probes[0] == last:
        return attended.reshape(rows, heads, dim)
    lse = torch.cat(lses, 2).view(kv_heads, rows, groups).transpose(0, 1)
    probed, where = slice(plan.probes[0] - first, rows), slice(*plan.probes)
    own = query[where].view(-1, kv_heads, groups, dim)
    merged = _merge_own(attended[probed], lse[probed], own, key_value[where], plan.ancestors, scale)
    return torch.cat([attended[: probed.start], merged]).reshape(rows, heads, dim)


def _merge_own(
    out: torch.Tensor,
    lse: torch.Tensor,
    query: torch.Tensor,
    key_value: torch.Tensor,
    ancestors: tuple[Ancestors, ...],
    scale: float,
) -> torch.Tensor:
    """Probed rows also see themselves and their ancestors.

    Args:
        out: attention to the prefix [probes, kv_heads, groups, dim].
        lse: its log-sum-exp [probes, kv_heads, groups].
        query: as `out`.
        key_value: [probes, 2, kv_heads, dim].
    """
    dtype = query.dtype
    out, query = out.float(), query.float()
    keys, values = key_value.float()[:, :, :, None].unbind(1)  # [probes, kv_heads, 1, dim]
    score = (query * keys).sum(-1) * scale
    out = torch.lerp(out, values, aligned(torch.sigmoid, score - lse)[..., None])
    if ancestors:
        lse = aligned(torch.logaddexp, lse, score)
    for rows, sources in ancestors:
        score = (query[rows] * keys[sources]).sum(-1) * scale
        weight = aligned(torch.sigmoid, score - lse[rows])[..., None]
        out[rows] = torch.lerp(out[rows], values[sources], weight)
        lse[rows] = aligned(torch.logaddexp, lse[rows], score)
    return out.to(dtype)


def _attend_chunk(
    chunk: Chunk, query: torch.Tensor, arena: Arena, scale: float, window: int | None
) -> torch.Tensor:
    """Consecutive tokens of one prompt -> [rows, heads, dim]."""
    length = chunk.stop - chunk.start
    end = chunk.position + length
    first = 0 if window is None else max(0, chunk.position - window + 1)
    groups = query.shape[1] // arena.keys.shape[1]
    keys = arena.keys.narrow(2, chunk.base + first, end - first).repeat_interleave(groups, dim=1)
    values = arena.values.narrow(2, chunk.base + first, end - first).repeat_interleave(groups, dim=1)
    rows = query[chunk.start : chunk.stop].transpose(0, 1)[None]
    if end == length and (window is None or length <= window):
        out = functional.scaled_dot_product_attention(rows, keys, values, is_causal=True, scale=scale)
    else:
        sees = visible(chunk.position, end, first, window).to(query.device)
        out = functional.scaled_dot_product_attention(rows, keys, values, attn_mask=sees, scale=scale)
    return out[0].transpose(0, 1)


def visible(position: int, end: int, first: int, window: int | None) -> torch.Tensor:
    """True where the query at a position in [position, end) sees the key at one in [first, end)."""
    behind = torch.arange(position, end)[:, None] - torch.arange(first, end)
    seen = behind >= 0
    return seen if window is None else seen & (behind < window)


def aligned(function: Callable[..., torch.Tensor], *arguments: torch.Tensor) -> torch.Tensor:
    """An elementwise function whose results do not depend on where in the tensors an element is.

    torch computes the last elements of a tensor, those that fill no vector register, by scalar code whose
    exponentials differ in the last bit. So the arguments, all of one shape, are filled up to whole registers.
    """
    size = arguments[0].numel()
    multiple = _LANES if size < _PARALLEL_ELEMENTS else _LANES * _MAX_THREADS
    padded = (functional.pad(argument.reshape(-1), (0, -size % multiple)) for argument in arguments)
    return function(*padded)[:size].view(arguments[0].shape)


def _attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, mask: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention and its log-sum-exp: [1, heads, n, dim] and [1, heads, n] float32; mask [n, keys]."""
    if key.shape[2] == 0:
        return torch.zeros_like(query), query.new_full(query.shape[:3], -torch.inf, dtype=torch.float32)
    if query.device.type == "cpu":
        out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(
            query, key, value, attn_mask=mask, scale=scale
        )
        return out, lse.float()
    return attend_portably(query, key, value, scale, mask)


def attend_portably(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scale: float,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """What `_attend` computes on devices whose kernels keep the log-sum-exp to themselves, in fp32."""
    scores = torch.matmul(query.float() * scale, key.float().transpose(2, 3))
    if mask is not None:
        scores = scores + mask
    lse = torch.logsumexp(scores, dim=-1)
    return torch.matmul(torch.exp(scores - lse[..., None]), value.float()).to(query.dtype), lse
