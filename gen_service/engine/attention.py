"""Attention of one ragged forward pass over many sequences, with the KV cache beside the model.

Registered with transformers' `AttentionInterface`; a model calls `ragged_attention` once per layer and passes
the plan of the pass through as a keyword. Tree rows need no mask: they attend to the prefix without
causality, and the row itself and the few rows of the same pass that are its ancestors are merged in by
log-sum-exp, which is the paper's branch-isolating mask (Eq. 5) exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.nn import functional
from transformers import AttentionInterface

from gen_service.engine.kv_cache import KvCache
from gen_service.engine.tree_attention import TreeAttention

ATTENTION_NAME = "ttmark_ragged"
_LANES = 32  # floats that torch's vectorised loops take at once, at most
_PARALLEL_ELEMENTS = 32768  # from here on torch splits an elementwise operation between threads
_MAX_THREADS = 16


class Span(NamedTuple):
    """Rows [start, stop) of the pass attend to the cache rows [first, last)."""

    start: int
    stop: int
    first: int
    last: int


class Chunk(NamedTuple):
    """Rows [start, stop) of the pass are the tokens `position` and after of a sequence cached from `base`."""

    start: int
    stop: int
    base: int
    position: int


class Ancestors(NamedTuple):
    """Row `rows[i]` of the pass also attends to row `sources[i]`."""

    rows: torch.Tensor
    sources: torch.Tensor


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """What each row of a pass attends to.

    Rows [0, tree_rows) are tree rows (probes, committed tokens, padding): prefix, ancestors, self. The rest
    are prompt chunks: prefix and, causally, the chunk.

    Attributes:
        cache: where keys and values live.
        spans: the prefixes of [0, tree_rows) under a sliding window (None: full attention).
        write_rows, write_slots: rows whose keys and values are kept, and the cache rows that take them. They
            are written before anything is read, so a piece sees the pieces before it of the same pass.
        kernel: computes the tree rows in one launch per layer, where there is one.
    """

    cache: KvCache
    tree_rows: int
    spans: Callable[[int | None], tuple[Span, ...]]
    ancestors: tuple[Ancestors, ...]
    chunks: tuple[Chunk, ...]
    write_rows: torch.Tensor
    write_slots: torch.Tensor
    kernel: TreeAttention | None = None


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
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    layer = _Layer(attention_plan, query[0], key[0], value[0], scale, sliding_window)
    keys, values = attention_plan.cache.layer(_layer_index(module), layer.key, layer.value)
    keys.index_copy_(0, attention_plan.write_slots, layer.key[attention_plan.write_rows])
    values.index_copy_(0, attention_plan.write_slots, layer.value[attention_plan.write_rows])
    parts = [layer.tree(keys, values)] if attention_plan.tree_rows else []
    parts += [layer.chunk(chunk, keys, values) for chunk in attention_plan.chunks]
    return torch.cat(parts)[None], None


def _layer_index(module: torch.nn.Module) -> int:
    index = module.layer_idx
    if not isinstance(index, int):
        raise NotImplementedError("attention module without a layer index")
    return index


class _Layer:
    """One layer's queries, keys and values, and how parts of them attend."""

    def __init__(
        self,
        plan: AttentionPlan,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scale: float,
        window: int | None,
    ) -> None:
        self._plan = plan
        self._scale = scale
        self._window = window
        self._groups = query.shape[0] // key.shape[0]
        self._query = query  # [heads, rows, dim]
        self.key = key.transpose(0, 1)  # [rows, kv_heads, dim]
        self.value = value.transpose(0, 1)  # [rows, kv_heads, dim]

    def tree(self, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Tree rows: prefix, then self, then ancestors -> [tree_rows, heads, dim]."""
        if self._plan.kernel is not None:
            return self._plan.kernel(
                self._query, self.key, self.value, keys, values, self._window, self._scale
            )
        rows, groups = self._plan.tree_rows, self._groups
        heads, _, dim = self._query.shape
        kv_heads = heads // groups
        query = self._query[:, :rows].reshape(kv_heads, groups, rows, dim).transpose(1, 2)
        # Heads that share a key lie side by side on the query axis: a prefix is read once per KV head.
        packed = query.reshape(1, kv_heads, rows * groups, dim)
        outs, lses = [], []
        for start, stop, first, last in self._plan.spans(self._window):
            part = packed[:, :, start * groups : stop * groups]
            out, lse = _attend(
                part, _heads_first(keys[first:last]), _heads_first(values[first:last]), self._scale
            )
            outs.append(out)
            lses.append(lse)
        out = torch.cat(outs, dim=2).view(kv_heads, rows, groups, dim).float()
        lse = torch.cat(lses, dim=2).view(kv_heads, rows, groups)
        own_key = self.key[:rows].transpose(0, 1)  # [kv_heads, rows, dim]
        own_value = self.value[:rows].transpose(0, 1)
        out, lse = self._merge(out, lse, query, own_key, own_value)
        for chosen, sources in self._plan.ancestors:
            merged = self._merge(
                out[:, chosen], lse[:, chosen], query[:, chosen], own_key[:, sources], own_value[:, sources]
            )
            out[:, chosen], lse[:, chosen] = merged
        return out.to(query.dtype).permute(1, 0, 2, 3).reshape(rows, heads, dim)

    def _merge(
        self,
        out: torch.Tensor,
        lse: torch.Tensor,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Adds a key per row to attention [kv, n, groups, dim] whose log-sum-exp is `lse` [kv, n, groups]."""
        score = (query.float() * key[:, :, None].float()).sum(-1) * self._scale
        weight = aligned(torch.sigmoid, score - lse)[..., None]
        return out + weight * (value[:, :, None].float() - out), aligned(torch.logaddexp, lse, score)

    def chunk(self, chunk: Chunk, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Consecutive tokens of one prompt -> [rows, heads, dim]."""
        length = chunk.stop - chunk.start
        end = chunk.position + length
        first = 0 if self._window is None else max(0, chunk.position - self._window + 1)
        rows = slice(chunk.base + first, chunk.base + end)
        query = self._query[None, :, chunk.start : chunk.stop]
        key = _heads_first(keys[rows]).repeat_interleave(self._groups, dim=1)
        value = _heads_first(values[rows]).repeat_interleave(self._groups, dim=1)
        if end == length and (self._window is None or length <= self._window):
            out = functional.scaled_dot_product_attention(
                query, key, value, is_causal=True, scale=self._scale
            )
        else:
            mask = _band_mask(chunk.position, end, first, self._window, query.device)
            out = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, scale=self._scale
            )
        return out[0].transpose(0, 1)


def aligned(function: Callable[..., torch.Tensor], *arguments: torch.Tensor) -> torch.Tensor:
    """An elementwise function whose results do not depend on where in the tensors an element is.

    torch computes the last elements of a tensor, those that fill no vector register, by scalar code whose
    exponentials differ in the last bit. So the arguments, all of one shape, are filled up to whole registers.
    """
    size = arguments[0].numel()
    multiple = _LANES if size < _PARALLEL_ELEMENTS else _LANES * _MAX_THREADS
    padded = (functional.pad(argument.reshape(-1), (0, -size % multiple)) for argument in arguments)
    return function(*padded)[:size].view(arguments[0].shape)


def _heads_first(rows: torch.Tensor) -> torch.Tensor:
    return rows.transpose(0, 1)[None]  # [rows, kv_heads, dim] -> [1, kv_heads, rows, dim]


def _band_mask(position: int, end: int, first: int, window: int | None, device: torch.device) -> torch.Tensor:
    """True where the query at a position in [position, end) sees the key at one in [first, end)."""
    behind = torch.arange(position, end, device=device)[:, None] - torch.arange(first, end, device=device)
    seen = behind >= 0
    return seen if window is None else seen & (behind < window)


def _attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention without a mask and its log-sum-exp: [1, heads, n, dim] and [1, heads, n] float32."""
    if key.shape[2] == 0:
        return torch.zeros_like(query), query.new_full(query.shape[:3], -torch.inf, dtype=torch.float32)
    if query.device.type == "cpu":
        out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, scale=scale)
        return out, lse.float()
    return attend_portably(query, key, value, scale)


def attend_portably(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """What `_attend` computes on devices whose kernels keep the log-sum-exp to themselves, in fp32."""
    scores = torch.matmul(query.float() * scale, key.float().transpose(2, 3))
    lse = torch.logsumexp(scores, dim=-1)
    return torch.matmul(torch.exp(scores - lse[..., None]), value.float()).to(query.dtype), lse
