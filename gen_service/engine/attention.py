"""Attention of one ragged forward pass over many sequences, with the KV cache beside the model.

Each sequence attends in a call of its own, whose shape depends on that sequence alone. Probed rows need no
mask: they attend to the prefix without causality, and the row itself and the few rows of the same pass that
are its ancestors are merged in by log-sum-exp, which is the paper's branch-isolating mask (Eq. 5) exactly.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from ttmark.gen_service.engine.chunk_attention import Chunk, attend_chunk
from ttmark.gen_service.engine.flash import aligned, attend_with_lse, merge_sinks
from ttmark.gen_service.engine.kv_cache import Arena, KvCache
from ttmark.gen_service.engine.spans import Span
from ttmark.gen_service.engine.tree_attention import TreeAttention


class Adopted(NamedTuple):
    """Rows `rows` of keys and values `layers` of an earlier pass become the cache rows `slots`."""

    layers: dict[int, torch.Tensor]
    rows: torch.Tensor
    slots: torch.Tensor


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
        adopted: probed rows of earlier passes that are cached now.
        kept: takes the keys and values of the probed rows, for each layer.
    """

    cache: KvCache
    slots: torch.Tensor
    chunks: tuple[Chunk, ...]
    spans: Callable[[int | None, int], tuple[Span, ...]]
    probes: tuple[int, int]
    ancestors: tuple[Ancestors, ...]
    kernel: TreeAttention | None = None
    adopted: tuple[Adopted, ...] = ()
    kept: dict[int, torch.Tensor] | None = None


def attend(
    plan: AttentionPlan,
    layer: int,
    query: torch.Tensor,
    key_value: torch.Tensor,
    *,
    scale: float,
    window: int | None = None,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attention of one layer: query [rows, heads, dim], key_value [rows, 2, kv_heads, dim].

    Args:
        sinks: float32 [heads], a score of each head that takes its share of the softmax and has no value.

    Returns [rows, heads * dim].
    """
    arena = plan.cache.write(layer, plan.slots, key_value[: len(plan.slots)])
    adopt(plan, layer, arena)
    keep_probed(plan, layer, key_value)
    parts = [attend_chunk(chunk, query, arena, scale, window, sinks) for chunk in plan.chunks]
    first, last = (plan.chunks[-1].stop if plan.chunks else 0), plan.probes[1]
    if last > first and plan.kernel is not None:
        tree = slice(first, last)
        parts.append(plan.kernel(query[tree], key_value[tree], arena.rows, window, scale, sinks))
    elif last > first:
        parts.append(_attend_tree(plan, first, query, key_value, arena, scale, window, sinks))
    if len(query) > last:
        parts.append(query.new_zeros((len(query) - last, *query.shape[1:])))
    return (parts[0] if len(parts) == 1 else torch.cat(parts)).reshape(len(query), -1)


def adopt(plan: AttentionPlan, layer: int, arena: Arena) -> None:
    """Caches what earlier passes probed and the plan adopts."""
    for layers, rows, slots in plan.adopted:
        arena.rows.index_copy_(0, slots, layers[layer].index_select(0, rows))


def keep_probed(plan: AttentionPlan, layer: int, key_value: torch.Tensor) -> None:
    """Keeps keys and values [rows, 2, kv_heads, dim] of the probed rows where the plan wants them."""
    if plan.kept is not None:
        plan.kept[layer] = key_value[slice(*plan.probes)]


def _attend_tree(
    plan: AttentionPlan,
    first: int,
    query: torch.Tensor,
    key_value: torch.Tensor,
    arena: Arena,
    scale: float,
    window: int | None,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Rows from `first` up to the last probe -> [rows, heads, dim]."""
    last = plan.probes[1]
    rows, (heads, dim), kv_heads = last - first, query.shape[1:], key_value.shape[2]
    groups = heads // kv_heads
    own = query[first:last].view(rows, kv_heads, groups, dim)
    attended, lse = _attend_each(own, plan.spans(window, groups), arena, scale)
    if sinks is not None:
        attended, lse = merge_sinks(attended, lse, sinks.view(kv_heads, groups))
    if plan.probes[0] == last:
        return attended.reshape(rows, heads, dim)
    probed, where = slice(plan.probes[0] - first, rows), slice(*plan.probes)
    merged = _merge_own(attended[probed], lse[probed], own[probed], key_value[where], plan.ancestors, scale)
    return torch.cat([attended[: probed.start], merged]).reshape(rows, heads, dim)


def _attend_each(
    query: torch.Tensor, spans: Sequence[Span], arena: Arena, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """[rows, kv_heads, groups, dim] and the log-sum-exp [rows, kv_heads, groups], by a call for each span."""
    rows, kv_heads, groups, dim = query.shape
    # Heads that share a key lie side by side on the query axis: a prefix is read once per KV head.
    packed = query.transpose(0, 1).reshape(1, kv_heads, rows * groups, dim)
    outs, lses = [], []
    for part, span in zip(
        packed.split_with_sizes([span.rows * groups for span in spans], 2), spans, strict=True
    ):
        keys = arena.keys.narrow(2, span.first, span.length)
        values = arena.values.narrow(2, span.first, span.length)
        out, lse = attend_with_lse(part, keys, values, scale, span.mask)
        outs.append(out)
        lses.append(lse)
    attended = torch.cat(outs, 2).view(kv_heads, rows, groups, dim).transpose(0, 1)
    return attended, torch.cat(lses, 2).view(kv_heads, rows, groups).transpose(0, 1)


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
