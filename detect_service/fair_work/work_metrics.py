"""Prometheus metrics of work that is too long for the event loop, and of what was refused."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

# `cost`: one request asks for too much; `budget`: the tenant's minute is used up; `queue`: too much waits.
REFUSALS = ("cost", "budget", "queue")
_WAIT_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)


class WorkMetrics:
    """Jobs in hand, how long they wait, what they cost, and those that were given up or refused."""

    def __init__(self, registry: CollectorRegistry, modes: tuple[str, ...]) -> None:
        self._depth = Gauge(
            "ttmark_detect_queue_jobs", "Jobs of the workers, running and waiting.", registry=registry
        )
        self._waits = Histogram(
            "ttmark_detect_queue_seconds",
            "Time from a job's arrival to its first turn on a worker.",
            buckets=_WAIT_BUCKETS,
            registry=registry,
        )
        self._blocks = Counter(
            "ttmark_detect_work_blocks",
            "Estimated work of admitted requests, in hashed blocks.",
            ["mode"],
            registry=registry,
        )
        self._abandoned = Counter(
            "ttmark_detect_jobs_abandoned",
            "Jobs given up because their client had left.",
            registry=registry,
        )
        self._refusals = Counter(
            "ttmark_detect_work_refusals",
            "Requests refused for their work.",
            ["reason"],
            registry=registry,
        )
        for mode in modes:
            self._blocks.labels(mode)
        for reason in REFUSALS:
            self._refusals.labels(reason)

    def watch(self, depth: Callable[[], int]) -> None:
        """Reads at each scrape how many jobs are in hand."""
        self._depth.set_function(depth)

    def started(self, waited_seconds: float) -> None:
        """A job got its first turn."""
        self._waits.observe(waited_seconds)

    def abandoned(self) -> None:
        """A job was given up: nobody waited for it."""
        self._abandoned.inc()

    def admitted(self, mode: str, blocks: int) -> None:
        """A request may run."""
        self._blocks.labels(mode).inc(blocks)

    def refused(self, reason: str) -> None:
        """A request was refused; `reason` is one of REFUSALS."""
        self._refusals.labels(reason).inc()
