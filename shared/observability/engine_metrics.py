"""Prometheus metrics of a generation engine: load, cache, and what its forward passes are made of."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_QUEUE_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0)
_ROW_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
_CANDIDATE_BUCKETS = (1, 2, 4, 8, 12, 16, 24, 32, 50, 100, 200, 500)
ROW_KINDS = ("prefill", "probe", "commit")
STEP_PARTS = ("forward", "reweight", "other")


class EngineMetrics:
    """The engines of one process; the label `model` is a served model's name, set by the operator."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Gauge(
            "ttmark_engine_requests", "Completions in hand.", ["model", "state"], registry=registry
        )
        self._kv_used = Gauge(
            "ttmark_engine_kv_cache_used_tokens", "Cache rows in use.", ["model"], registry=registry
        )
        self._kv_capacity = Gauge(
            "ttmark_engine_kv_cache_capacity_tokens", "Cache rows there are.", ["model"], registry=registry
        )
        self._branch_budget = Gauge(
            "ttmark_engine_branch_budget",
            "Candidates of a block level that may be probed together now.",
            ["model"],
            registry=registry,
        )
        self._queue = Histogram(
            "ttmark_engine_queue_seconds",
            "Time from a completion's arrival to its first place in a step.",
            ["model"],
            buckets=_QUEUE_BUCKETS,
            registry=registry,
        )
        self._step_rows = Histogram(
            "ttmark_engine_step_rows",
            "Rows (tokens) of one forward pass; its count is the number of steps.",
            ["model"],
            buckets=_ROW_BUCKETS,
            registry=registry,
        )
        self._rows = Counter(
            "ttmark_engine_rows",
            "Rows computed: of prompts, of candidates that are probed, of tokens that are kept.",
            ["model", "kind"],
            registry=registry,
        )
        self._seconds = Counter(
            "ttmark_engine_step_seconds",
            "Time spent in steps: in the forward pass, in reweighting and drawing blocks, in the rest.",
            ["model", "part"],
            registry=registry,
        )
        self._candidates = Histogram(
            "ttmark_engine_candidates",
            "First tokens (m) that were probed for a block.",
            ["model"],
            buckets=_CANDIDATE_BUCKETS,
            registry=registry,
        )
        self._preemptions = Counter(
            "ttmark_engine_preemptions",
            "Completions that gave up their cache rows and started again.",
            ["model"],
            registry=registry,
        )

    def watch(
        self,
        model: str,
        *,
        running: Callable[[], float],
        waiting: Callable[[], float],
        kv_used_tokens: Callable[[], float],
        kv_capacity_tokens: float,
        branch_budget: Callable[[], float],
    ) -> None:
        """Reads these at each scrape, so that they are true even while the engine's thread hangs."""
        self._requests.labels(model, "running").set_function(running)
        self._requests.labels(model, "waiting").set_function(waiting)
        self._kv_used.labels(model).set_function(kv_used_tokens)
        self._kv_capacity.labels(model).set(kv_capacity_tokens)
        self._branch_budget.labels(model).set_function(branch_budget)
        self._queue.labels(model)
        self._step_rows.labels(model)
        self._candidates.labels(model)
        self._preemptions.labels(model)
        for kind in ROW_KINDS:
            self._rows.labels(model, kind)
        for part in STEP_PARTS:
            self._seconds.labels(model, part)

    def admitted(self, model: str, waited_seconds: float) -> None:
        """A completion got its first place in a step."""
        self._queue.labels(model).observe(waited_seconds)

    def preempted(self, model: str, completions: int) -> None:
        """So many completions gave up their cache rows."""
        self._preemptions.labels(model).inc(completions)

    def stepped(self, model: str, rows: Mapping[str, int], candidates: Iterable[int]) -> None:
        """One step: rows by kind, and the candidates of each block whose first level it probes."""
        self._step_rows.labels(model).observe(sum(rows.values()))
        for kind, count in rows.items():
            self._rows.labels(model, kind).inc(count)
        of_blocks = self._candidates.labels(model)
        for count in candidates:
            of_blocks.observe(count)

    def seconds_spent(self, model: str, seconds: Mapping[str, float]) -> None:
        """How long the parts of a step took."""
        for part, duration in seconds.items():
            self._seconds.labels(model, part).inc(duration)
