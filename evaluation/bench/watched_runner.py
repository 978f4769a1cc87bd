"""A runner that times the steps of its engine, and after each pass its matrix products alone."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ttmark.evaluation.bench.products import Products
from ttmark.gen_service.engine.kv_cache import KvCache
from ttmark.gen_service.engine.loading import Acceleration
from ttmark.gen_service.engine.native import find_kernels
from ttmark.gen_service.engine.ragged import Append, Probe
from ttmark.gen_service.engine.runner import Runner
from ttmark.gen_service.engine.tree_attention import find_tree_kernel


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step of the engine: a pass and all that is done before the next.

    Attributes:
        seconds: of processor time.
        products: the matrix products at the same number of rows, right behind the pass.
    """

    rows: int
    seconds: float
    products: float


class WatchedRunner(Runner):
    """Computes what its base does. Steps with parts of prompts, and the last one, are not counted.

    Attributes:
        products_alone: what is run behind each pass; None: nothing is, and no step is counted.
        steps: those that were counted.
    """

    clock: Callable[[], float] = staticmethod(time.process_time)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.products_alone: Products | None = None
        self.steps: list[StepTime] = []
        self._open: tuple[float, StepTime] | None = None  # begin of the running step, and what is known of it

    def watch(self, products: Products | None) -> list[StepTime]:
        """Counts steps from now on, or no more; the steps that were counted so far."""
        self.products_alone, self._open = products, None
        seen, self.steps = self.steps, []
        return seen

    def forward(self, pieces: Sequence[Append | Probe]) -> list[torch.Tensor]:
        """The base's pass, timed."""
        products = self.products_alone
        if products is None:
            return super().forward(pieces)
        started = self.clock()
        if self._open is not None:
            begun, step = self._open
            self.steps.append(replace(step, seconds=started - begun - step.seconds))
        logits = super().forward(pieces)
        self._open = None
        if not any(isinstance(piece, Append) and piece.is_chunk for piece in pieces):
            ended = self.clock()
            rows = self.row_counts.pad(sum(_rows(piece) for piece in pieces))
            alone = products.seconds(rows)
            self._open = (started, StepTime(rows, self.clock() - ended, alone))
        return logits


@dataclass(frozen=True, slots=True)
class WatchedAcceleration(Acceleration):
    """Makes watched runners, which `made` holds."""

    made: list[WatchedRunner] = field(default_factory=list)

    def runner(self, model: Any, cache: KvCache, *, reproducible: bool = True) -> WatchedRunner:
        """On a CPU's operators."""
        self.made.append(
            WatchedRunner(
                model,
                cache,
                reproducible=reproducible,
                tree_kernel=find_tree_kernel(model) if self.kernels else None,
                kernels=find_kernels() if self.kernels else None,
                packed=self.packed,
                fused=self.fused,
            )
        )
        return self.made[-1]


def _rows(piece: Append | Probe) -> int:
    return len(piece.tokens) if isinstance(piece, Append) else len(piece.paths)
