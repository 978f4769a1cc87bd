"""What vLLM's scheduler says of itself."""

from typing import TYPE_CHECKING, Any

from vllm.v1.metrics.loggers import StatLoggerBase

if TYPE_CHECKING:
    Base = Any
else:
    Base = StatLoggerBase


class Levels(Base):  # type: ignore[misc]
    """A logger in vLLM's sense, which keeps the last figures.

    Attributes:
        cache_usage: share of the KV cache's blocks that requests hold.
        preemptions: since the start.
    """

    def __init__(self) -> None:
        self.cache_usage = 0.0
        self.preemptions = 0

    def record(self, scheduler_stats: Any, iteration_stats: Any, *_: Any, **__: Any) -> None:
        """Called by vLLM after each step."""
        if scheduler_stats is not None:
            self.cache_usage = scheduler_stats.kv_cache_usage
        if iteration_stats is not None:
            self.preemptions += iteration_stats.num_preempted_reqs

    def log_engine_initialized(self) -> None:
        """Nothing is logged here."""
