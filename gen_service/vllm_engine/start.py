"""Starts vLLM's processes, and keeps Ctrl-C from them."""

import signal
from multiprocessing import resource_tracker
from typing import Any

from vllm.v1.engine.async_llm import AsyncLLM

from ttmark.gen_service.vllm_engine.levels import Levels


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
