"""Attention of tree rows as one Triton kernel per layer: prefix, ancestors and the row itself in one pass.

Only imported where a GPU is used. Under TRITON_INTERPRET=1 the same kernel runs on a CPU, which is how the
tests compare it with `ttmark.gen_service.engine.attention`.
"""

from typing import Any

import torch
import triton
import triton.language as tl

_BLOCK_ROWS = 16  # the fewest that a matrix product of the kernel takes
_KEY_BYTES = 128  # of one element of every key in a block: what shared memory holds at the largest head size
_LOG2_E = 1.4426950408889634
_LOWEST: Any = tl.constexpr(-1e30)  # below every score, and finite: differences with it are not NaN


@triton.jit  # type: ignore[untyped-decorator]
def _tree_kernel(  # type: ignore[no-untyped-def]
    query,  # [rows, heads, dim]
    key,  # [rows, kv_heads, dim], of this pass
    value,
    keys,  # [capacity, kv_heads, dim], the cache
    values,
    out,  # [rows, heads, dim]
    tiles,  # [tiles, 4]: rows [start, stop) attend to cache rows [first, last)
    own,  # [rows, DEPTH]: rows of this pass that a row attends to, -1 for none
    sinks,  # [heads], scores to the base of 2 that have no value
    scale,
    query_head_stride,
    query_row_stride,
    key_row_stride,
    key_head_stride,
    cache_row_stride,
    cache_head_stride,
    out_row_stride,
    out_head_stride,
    GROUPS: tl.constexpr,
    DIM: tl.constexpr,
    DIM_LANES: tl.constexpr,
    DEPTH: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    SINKS: tl.constexpr,
):
    tile = tiles + tl.program_id(0) * 4
    kv_head = tl.program_id(1)
    start, stop = tl.load(tile), tl.load(tile + 1)
    first, last = tl.load(tile + 2), tl.load(tile + 3)
    # Heads that share a key lie side by side on the query axis: a prefix is read once per KV head.
    lane = tl.arange(0, ROWS)
    row = start + lane // GROUPS
    head = kv_head * GROUPS + lane % GROUPS
    is_row = row < stop
    dim = tl.arange(0, DIM_LANES)
    is_dim = dim < DIM
    is_query = is_row[:, None] & is_dim[None, :]
    place = head[:, None] * query_head_stride + row[:, None] * query_row_stride + dim[None, :]
    q = tl.load(query + place, mask=is_query, other=0.0)  # [ROWS, DIM_LANES]
    if SINKS:
        highest = tl.load(sinks + head)
        total = tl.full([ROWS], 1.0, tl.float32)
    else:
        highest = tl.full([ROWS], _LOWEST, tl.float32)
        total = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, DIM_LANES], tl.float32)
    for block in range(first, last, KEYS):
        slot = block + tl.arange(0, KEYS)
        is_slot = slot < last
        cached = slot[:, None].to(tl.int64) * cache_row_stride + kv_head * cache_head_stride + dim[None, :]
        is_key = is_slot[:, None] & is_dim[None, :]
        k = tl.load(keys + cached, mask=is_key, other=0.0)  # [KEYS, DIM_LANES]
        v = tl.load(values + cached, mask=is_key, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(is_slot[None, :], scores, _LOWEST)  # [ROWS, KEYS]
        top = tl.maximum(highest, tl.max(scores, 1))
        shrink = tl.exp2(highest - top)
        mass = tl.exp2(scores - top[:, None])
        total = total * shrink + tl.sum(mass, 1)
        sums = sums * shrink[:, None] + tl.dot(mass.to(v.dtype), v, input_precision="ieee")
        highest = top
    for level in tl.static_range(DEPTH):
        source = tl.load(own + row * DEPTH + level, mask=is_row, other=-1)
        is_own = (source >= 0)[:, None] & is_dim[None, :]
        passed = source[:, None] * key_row_stride + kv_head * key_head_stride + dim[None, :]
        own_k = tl.load(key + passed, mask=is_own, other=0.0)  # [ROWS, DIM_LANES]
        own_v = tl.load(value + passed, mask=is_own, other=0.0)
        score = tl.sum(q.to(tl.float32) * own_k.to(tl.float32), 1) * scale
        score = tl.where(source >= 0, score, _LOWEST)
        own_top = tl.maximum(highest, score)
        own_shrink = tl.exp2(highest - own_top)
        own_mass = tl.where(source >= 0, tl.exp2(score - own_top), 0.0)
        total = total * own_shrink + own_mass
        sums = sums * own_shrink[:, None] + own_mass[:, None] * own_v.to(tl.float32)
        highest = own_top
    result = sums / tl.where(is_row, total, 1.0)[:, None]
    target = row[:, None] * out_row_stride + head[:, None] * out_head_stride + dim[None, :]
    tl.store(out + target, result.to(out.dtype.element_ty), mask=is_query)


def attend_tree(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    tiles: torch.Tensor,
    own: torch.Tensor,
    scale: float,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attention of tree rows over their prefix in the cache and over rows of the same pass (Eq. 5).

    Args:
        query: [rows, heads, dim].
        key, value: [rows, kv_heads, dim] of this pass, with equal strides.
        keys, values: the cache, [capacity, kv_heads, dim], with equal strides.
        tiles: from `tile_spans`; together they cover every row once.
        own: [rows, depth] int32, rows of this pass that each row attends to, itself among them; -1 is none.
        sinks: float32 [heads], a score of each head that takes its share of the softmax and has no value.

    Returns [rows, heads, dim] in the dtype of `query`.
    """
    _, heads, dim = query.shape
    rows, kv_heads = own.shape[0], key.shape[1]
    if key.stride() != value.stride():
        value = value.contiguous()
        key = key.contiguous()
    query = query if query.stride(-1) == 1 else query.contiguous()
    out = torch.empty((rows, heads, dim), dtype=query.dtype, device=query.device)
    _tree_kernel[(len(tiles), kv_heads)](
        query,
        key,
        value,
        keys,
        values,
        out,
        tiles,
        own,
        None if sinks is None else sinks * _LOG2_E,
        scale * _LOG2_E,
        query.stride(1),
        query.stride(0),
        key.stride(0),
        key.stride(1),
        keys.stride(0),
        keys.stride(1),
        out.stride(0),
        out.stride(1),
        **launch_sizes(heads, kv_heads, dim, own.shape[1], query.element_size()),
        SINKS=sinks is not None,
    )
    return out


def tile_rows(groups: int) -> int:
    """Rows of the pass that a program takes."""
    return _rows_per_program(groups) // groups


def _rows_per_program(groups: int) -> int:
    """Packed query rows of one tile, `groups` for each row of the pass: a power of two."""
    return max(_BLOCK_ROWS, 1 << (groups - 1).bit_length())


def launch_sizes(heads: int, kv_heads: int, dim: int, depth: int, element_size: int) -> dict[str, int]:
    """Compile-time sizes of the kernel; `element_size` in bytes."""
    groups = heads // kv_heads
    keys = _KEY_BYTES // element_size
    return {
        "GROUPS": groups,
        "DIM": dim,
        "DIM_LANES": max(16, int(triton.next_power_of_2(dim))),
        "DEPTH": depth,
        "ROWS": _rows_per_program(groups),
        "KEYS": keys if dim <= 128 else keys // 2,
    }
