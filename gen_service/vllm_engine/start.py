"""Starts vLLM's processes, keeps Ctrl-C from them, and hears of their cache."""

import signal
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from vllm.v1.engine.async_llm import AsyncLLM
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


def start_vllm(config: Any, levels: Levels) -> Any:
    """vLLM's client, with the engine behind it; to be called in the event loop that it will live in.

    A terminal sends SIGINT to all processes of a command. vLLM's would give up what is in hand, which the
    service has yet to finish: they start with the signal blocked, and end when the client is shut down.
    """
    resource_tracker.ensure_running()  # unblocks the signal when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return AsyncLLM.from_vllm_config(
            config,
            stat_loggers=[lambda *_: levels],
            enable_log_requests=False,
            disable_log_stats=True,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
