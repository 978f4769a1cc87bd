"""What the steps of an engine look like from outside: its thread tells, the metrics remember."""

import time
from collections.abc import Mapping
from typing import Protocol

from ttmark.gen_service.decoding.block import TandemBlock
from ttmark.gen_service.engine.cached_sequence import CachedSequence
from ttmark.gen_service.engine.engine_metrics import ROW_KINDS, EngineMetrics
from ttmark.gen_service.engine.job import Work
from ttmark.gen_service.engine.text_reading import TextReading


class StepCounts(Protocol):
    """What is counted since the engine's start."""

    preemptions: int

    @property
    def reused_tokens(self) -> int:
        """Prompt tokens that were found in the cache."""


class StepRecorder:
    """Records the steps of one engine; the engine's thread calls it, but for `arrived`.

    A step without works is none. Without metrics nothing is recorded.
    """

    def __init__(self, metrics: EngineMetrics | None = None, model: str = "") -> None:
        self._metrics = metrics
        self._model = model
        self._arrivals: dict[CachedSequence, float] = {}
        self._works: Mapping[CachedSequence, Work] = {}
        self._started = self._forwarded = 0.0
        self._preemptions = self._reused_tokens = 0
        self._seconds: dict[str, float] = {}

    def arrived(self, sequence: CachedSequence) -> None:
        """A completion came in."""
        self._arrivals[sequence] = time.monotonic()

    def left(self, sequence: CachedSequence) -> None:
        """A completion ended, possibly before its first step."""
        self._arrivals.pop(sequence, None)

    def begins(self, works: Mapping[CachedSequence, Work]) -> None:
        """A forward pass over `works` is about to run; their blocks are as the pass finds them."""
        self._works, self._started = works, time.perf_counter()
        if self._metrics is None or not works:
            return
        rows = dict.fromkeys(ROW_KINDS, 0)
        candidates = self._metrics.candidates.labels(self._model)
        for sequence, work in works.items():
            if isinstance(sequence.block, TandemBlock):
                rows["probe"] += work.rows
                if sequence.block.builder.frontier.shape[1] == 1:
                    candidates.observe(work.rows)
            elif isinstance(sequence, TextReading):
                rows["reading"] += work.rows
            else:
                rows["prefill" if sequence.in_prompt else "commit"] += work.rows
        self._metrics.step_rows.labels(self._model).observe(sum(rows.values()))
        for kind, count in rows.items():
            self._metrics.rows.labels(self._model, kind).inc(count)

    def forwarded(self) -> None:
        """The forward pass has ended."""
        self._forwarded = time.perf_counter()

    def ends(self, counts: StepCounts, seconds: dict[str, float]) -> None:
        """The step has ended; the arguments count from the engine's start, `seconds` by part."""
        if self._metrics is None or not self._works:
            return
        now, total = time.monotonic(), time.perf_counter() - self._started
        for sequence in self._works:
            arrival = self._arrivals.pop(sequence, None)
            if arrival is not None:
                self._metrics.queue.labels(self._model).observe(max(0.0, now - total - arrival))
        preemptions, reused = counts.preemptions, counts.reused_tokens
        self._metrics.preemptions.labels(self._model).inc(preemptions - self._preemptions)
        self._metrics.reused.labels(self._model).inc(reused - self._reused_tokens)
        parts = {part: spent - self._seconds.get(part, 0.0) for part, spent in seconds.items()}
        parts["forward"] = self._forwarded - self._started
        parts["other"] = max(0.0, total - sum(parts.values()))
        for part, spent in parts.items():
            self._metrics.seconds.labels(self._model, part).inc(spent)
        self._preemptions, self._reused_tokens = preemptions, reused
        self._seconds = seconds
