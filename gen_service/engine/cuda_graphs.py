"""Passes without prompt chunks as CUDA graphs: one launch in place of hundreds.

A graph repeats the same kernels on the same memory. So a pass is filled up to one of a few numbers of rows,
and what differs from pass to pass lies in tensors that are written before the replay: tokens, positions, the
cache rows to write and the rows to attend to. Rows that fill up write to the cache's sink and attend to
nothing.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from ttmark.gen_service.engine.attention import AttentionPlan
from ttmark.gen_service.engine.kv_cache import KvCache
from ttmark.gen_service.engine.llama import FusedLlama
from ttmark.gen_service.engine.ragged import RaggedBatch
from ttmark.gen_service.engine.spans import Span
from ttmark.gen_service.engine.tree_attention import TreeAttention, TreeKernel

ROW_COUNTS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_DEPTH = 3  # rows of a pass that one may attend to: as many as the largest block has tokens

Capture = Callable[[Callable[[], torch.Tensor]], tuple[Callable[[], None], torch.Tensor]]
"""Records what a function computes; returns what repeats it, and the tensor that every repetition fills."""


class GpuCapture:
    """Records CUDA graphs that share their working memory, as only one runs at a time."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, run: Callable[[], torch.Tensor]) -> tuple[Callable[[], None], torch.Tensor]:
        """See `Capture`. The function runs once beforehand: kernels are compiled at their first use."""
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            run()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            result = run()
        return graph.replay, result


class TreeGraphs:
    """Graphs of one model over one cache, recorded when a number of rows first comes up."""

    def __init__(
        self,
        model: FusedLlama,
        cache: KvCache,
        device: torch.device,
        kernel: TreeKernel,
        capture: Capture,
    ) -> None:
        self._parts = model, cache, device, kernel, capture
        self._tile_rows = kernel.tile_rows(model.groups)
        self._graphs: dict[int, _Graph] = {}

    def hidden(self, batch: RaggedBatch) -> torch.Tensor | None:
        """What the last layer leaves [at least batch.rows, width], until the next call.

        None for a pass that no graph is made for: with prompt chunks, or too large.
        """
        rows = next((count for count in ROW_COUNTS if count >= batch.rows), None)
        if rows is None or batch.has_chunks or batch.depth > _DEPTH:
            return None
        if rows not in self._graphs:
            self._graphs[rows] = _Graph(rows, *self._parts)
        return self._graphs[rows](batch, self._tile_rows)


class _Graph:
    """A pass of a fixed number of rows."""

    def __init__(
        self,
        rows: int,
        model: FusedLlama,
        cache: KvCache,
        device: torch.device,
        kernel: TreeKernel,
        capture: Capture,
    ) -> None:
        self._rows = rows
        self._sink = cache.sink
        tokens, positions, slots = (torch.zeros(rows, dtype=torch.int64, device=device) for _ in range(3))
        slots.fill_(self._sink)  # the recording itself must not write to anybody's rows
        self._tokens, self._positions, self._slots = tokens, positions, slots
        self._own = torch.full((rows, _DEPTH), -1, dtype=torch.int32, device=device)
        # A tile has at least one row, so there are never more of them; those left over have none.
        self._tiles = {
            window: torch.zeros((rows, 4), dtype=torch.int32, device=device) for window in model.windows
        }
        plan = AttentionPlan(
            cache=cache,
            slots=slots,
            chunks=(),
            spans=_no_spans,
            probes=(0, rows),
            ancestors=(),
            kernel=TreeAttention(kernel, lambda window, _: self._tiles[window], self._own),
        )
        self._replay, self._hidden = capture(lambda: model.hidden(tokens, positions, plan))

    def __call__(self, batch: RaggedBatch, tile_rows: int) -> torch.Tensor:
        """Computes a batch of at most as many rows."""
        _fill(self._tokens, batch.tokens, 0)
        _fill(self._positions, batch.positions, 0)
        _fill(self._slots, batch.slots, self._sink)
        _fill(self._own, batch.own_rows(), -1)
        for window, tiles in self._tiles.items():
            _fill(tiles, batch.tiles(window, tile_rows), 0)
        self._replay()
        return self._hidden


def _fill(target: torch.Tensor, values: NDArray[np.int64], rest: int) -> None:
    """Writes `values` into the upper left of `target` and `rest` everywhere else."""
    whole = torch.full(target.shape, rest, dtype=target.dtype, pin_memory=target.is_cuda)
    whole[tuple(slice(size) for size in values.shape)] = torch.from_numpy(values)
    target.copy_(whole, non_blocking=True)


def _no_spans(window: int | None, groups: int) -> tuple[Span, ...]:
    raise NotImplementedError("a graph attends by its kernel alone")
