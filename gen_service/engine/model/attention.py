"""Attention of one ragged forward pass over many sequences, and the KV cache beside the model.

Each sequence owns a contiguous extent of the cache, and attends in a call of its own, whose shape depends on
that sequence alone. Probed rows need no mask: they attend to the prefix without causality, and the row itself
and the few rows of the same pass that are its ancestors are merged in by log-sum-exp, which is the paper's
branch-isolating mask (Eq. 5) exactly.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.nn import functional

from ttmark.gen_service.engine.model.tree_attention import Span, TreeAttention, visible


@dataclass(frozen=True, slots=True)
class Arena:
    """One layer: `rows` [capacity, 2, kv_heads, dim]; keys and values as [1, kv_heads, capacity, dim]."""

    rows: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor


class KvCache:
    """Arenas of `capacity` tokens per layer, made when a layer first writes."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._layers: dict[int, Arena] = {}

    def write(self, layer: int, slots: torch.Tensor, rows: torch.Tensor) -> Arena:
        """Keeps keys and values `rows` [n, 2, kv_heads, dim] in the cache rows `slots` [n]."""
        arena = self.arena(layer, rows)
        if len(slots):
            arena.rows.index_copy_(0, slots, rows)
        return arena

    def arena(self, layer: int, like: torch.Tensor) -> Arena:
        """The arena of a layer, made for rows [n, 2, kv_heads, dim] at its first use."""
        arena = self._layers.get(layer)
        if arena is None:
            arena = self._layers[layer] = _new_arena(self.capacity, like)
        return arena

    @property
    def bytes_per_token(self) -> int:
        """Bytes of one cached token over the layers that have written."""
        return sum(arena.rows[0].numel() * arena.rows.element_size() for arena in self._layers.values())

    def move(self, source: int, target: int, length: int) -> None:
        for arena in self._layers.values():
            arena.rows[target : target + length] = arena.rows[source : source + length].clone()


def _new_arena(capacity: int, like: torch.Tensor) -> Arena:
    """On a CPU the rows of one KV head lie together: read by head, in half the time of scattered rows."""
    if like.device.type == "cpu":
        rows = like.new_empty((*like.shape[1:3], capacity, like.shape[3])).permute(2, 0, 1, 3)
    else:
        rows = like.new_empty((capacity, *like.shape[1:]))
    keys, values = (rows[:, side].transpose(0, 1)[None] for side in (0, 1))
    return Arena(rows, keys, values)


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
        slots: the cache rows that take the keys and values of the chunks and commits. They are written before
            anything is read, so a piece sees the pieces before it of the same pass.
        spans: of the commits and probes, by sliding window (None: full attention) and heads per KV head.
        probes: first probed row, and the row after the last.
        kernel: computes commits and probes in one call per layer, where there is one.
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
