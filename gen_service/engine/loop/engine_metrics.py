"""Prometheus metrics of a generation engine, and what its thread tells them of each step."""

import time
from collections.abc import Callable, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ttmark.gen_service.decoding.tandem_block import TandemBlock
from ttmark.gen_service.engine.loop.cached_sequence import CachedSequence, TextReading
from ttmark.gen_service.engine.scheduling.schedulable import Work

_QUEUE_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0)
_ROW_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
_CANDIDATE_BUCKETS = (1, 2, 4, 8, 12, 16, 24, 32, 50, 100, 200, 500)
ROW_KINDS = ("prefill", "probe", "commit", "reading")
STEP_PARTS = ("forward", "filters", "reweight", "other")
LEVELS = {
    "ttmark_engine_kv_cache_used_tokens": "Cache rows in use.",
    "ttmark_engine_kv_cache_capacity_tokens": "Cache rows there are.",
    "ttmark_engine_kv_cache_prefix_tokens": (
        "Cache rows that are kept for prompts to come; they are free for any completion that needs them."
    ),
    "ttmark_engine_waiting_tenants": "Tenants of whom a completion had no part in the last step.",
    "ttmark_engine_branch_budget": "Candidates of a block level that may be probed together now.",
}


class EngineMetrics:
    """The engines of one process; the label `model` is a served model's name, set by the operator."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self._requests = Gauge(
            "ttmark_engine_requests", "Completions in hand.", ["model", "state"], registry=registry
        )
        self._levels = {
            name: Gauge(name, what, ["model"], registry=registry) for name, what in LEVELS.items()
        }
        self.queue = histogram(
            "ttmark_engine_queue_seconds",
            "Time from a completion's arrival to its first place in a step.",
            ["model"],
            buckets=_QUEUE_BUCKETS,
        )
        self.step_rows = histogram(
            "ttmark_engine_step_rows",
            "Rows (tokens) of one forward pass; its count is the number of steps.",
            ["model"],
            buckets=_ROW_BUCKETS,
        )
        self.rows = counter(
            "ttmark_engine_rows",
            "Rows computed: of prompts, of candidates that are probed, of tokens that are kept, "
            "of texts that are read.",
            ["model", "kind"],
        )
        self.seconds = counter(
            "ttmark_engine_step_seconds",
            "Time spent in steps: in the forward pass, in grammars and filters, in reweighting and drawing "
            "blocks, in the rest.",
            ["model", "part"],
        )
        self.candidates = histogram(
            "ttmark_engine_candidates",
            "First tokens (m) that were probed for a block.",
            ["model"],
            buckets=_CANDIDATE_BUCKETS,
        )
        self.preemptions = counter(
            "ttmark_engine_preemptions",
            "Completions that gave up their cache rows and started again.",
            ["model"],
        )
        self.reused = counter(
            "ttmark_engine_reused_prompt_tokens",
            "Prompt tokens that were found in the cache and not computed again.",
            ["model"],
        )

    def watch(
        self,
        model: str,
        *,
        running: Callable[[], float],
        waiting: Callable[[], float],
        levels: Mapping[str, Callable[[], float]],
    ) -> None:
        """Reads these at each scrape, also while the engine's thread hangs; `levels` are each of LEVELS."""
        self._requests.labels(model, "running").set_function(running)
        self._requests.labels(model, "waiting").set_function(waiting)
        for name, gauge in self._levels.items():
            gauge.labels(model).set_function(levels[name])
        self.queue.labels(model)
        self.step_rows.labels(model)
        self.candidates.labels(model)
        self.preemptions.labels(model)
        self.reused.labels(model)
        for kind in ROW_KINDS:
            self.rows.labels(model, kind)
        for part in STEP_PARTS:
            self.seconds.labels(model, part)


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
        self._arrivals[sequence] = time.monotonic()

    def left(self, sequence: CachedSequence) -> None:
        self._arrivals.pop(sequence, None)

    def begins(self, works: Mapping[CachedSequence, Work]) -> None:
        """A forward pass over `works` is about to run; their blocks are as the pass finds them."""
        self._works, self._started = works, time.perf_counter()
        if self._metrics is None or not works:
            return
        rows = dict.fromkeys(ROW_KINDS, 0)
        candidates = self._metrics.candidates.labels(self._model)
        for sequence, work in works.items():
            arrival = self._arrivals.pop(sequence, None)  # here: one step may be all that it takes
            if arrival is not None:
                self._metrics.queue.labels(self._model).observe(time.monotonic() - arrival)
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
        self._forwarded = time.perf_counter()

    def ends(self, preemptions: int, reused: int, seconds: dict[str, float]) -> None:
        """The step has ended; the arguments count from the engine's start, `seconds` by part."""
        if self._metrics is None or not self._works:
            return
        total = time.perf_counter() - self._started
        self._metrics.preemptions.labels(self._model).inc(preemptions - self._preemptions)
        self._metrics.reused.labels(self._model).inc(reused - self._reused_tokens)
        parts = {part: spent - self._seconds.get(part, 0.0) for part, spent in seconds.items()}
        parts["forward"] = self._forwarded - self._started
        parts["other"] = max(0.0, total - sum(parts.values()))
        for part, spent in parts.items():
            self._metrics.seconds.labels(self._model, part).inc(spent)
        self._preemptions, self._reused_tokens = preemptions, reused
        self._seconds = seconds
