"""Faults put into the worker of a running engine; each strikes the requests whose id names its kind.

The id of such a request is `KIND FUSE anything`: the fault strikes when the place is passed for the FUSE-th
time, from 0. It needs VLLM_ALLOW_INSECURE_SERIALIZATION, which the tests set.
"""

import gc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from ttmark.gen_service.features.vllm.worker.completion import Completion
from ttmark.gen_service.features.vllm.worker.worker_requests import WorkerRequests
from ttmark.shared.watermark.schemes.watermark import Watermark


class Injected(Exception):
    """Raised by faults."""


def _refuse(*_: Any) -> None:
    raise Injected


def _not_finite(_: Any, __: Any, logits: Any) -> None:
    logits.fill_(float("nan"))


METHODS: dict[str, tuple[str, Callable[..., None]]] = {
    "begin": ("__init__", _refuse),
    "open": ("open_block", _refuse),
    "grammar": ("adjust", _refuse),  # where a grammar masks what the model says
    "logits": ("adjust", _not_finite),
    "tokens": ("append", _refuse),
    "detokenizer": ("_take", _refuse),
    "accept": ("accept", _refuse),
}
"""By kind: the method of a completion before whose body the fault strikes, and what it does."""

KINDS = (*METHODS, "probe", "reweight", "silent", "key")


class Faulty(Watermark):
    """Fails, or gives no probabilities, in the worker; told from a sound one by its class alone."""

    def reweight(self, *_: Any) -> Any:
        raise Injected


class Silent(Watermark):
    """Gives no probabilities."""

    def reweight(self, keys: Any, contexts: Any, blocks: Any, probs: Any, offsets: Any) -> Any:
        return np.full_like(probs, np.nan)


def install(worker: Any) -> None:
    """In the worker: from now on requests are struck."""
    passed: Counter[str] = Counter()

    def struck(kind: str, request_id: str) -> bool:
        if not request_id.startswith(f"{kind} "):
            return False
        passed[request_id] += 1
        return passed[request_id] > int(request_id.split()[1])

    def before(kind: str, name: str, strike: Callable[..., None]) -> None:
        original = getattr(Completion, name)

        def method(self: Completion, *arguments: Any) -> Any:
            request = arguments[1] if name == "__init__" else self.request
            if struck(kind, request.request_id):
                strike(self, *arguments)
            return original(self, *arguments)

        setattr(Completion, name, method)

    for kind, (name, strike) in METHODS.items():
        before(kind, name, strike)
    desk: WorkerRequests = worker.model_runner.in_hand
    runner, probe = worker.model_runner, desk._probe

    def probed(branches: Any) -> Any:
        for row in {row for row, _, _ in branches}:
            completion: Any = desk._in_hand[runner.input_batch.req_ids[row]]
            if struck("probe", completion.request.request_id):
                raise Injected
        return probe(branches)

    desk._probe = probed


def held(worker: Any) -> dict[str, int]:
    """In the worker: what is kept of requests, by vLLM and by us; all is 0 where nothing runs."""
    runner = worker.model_runner
    core = next((each for each in gc.get_objects() if type(each).__name__ == "EngineCoreProc"), None)
    found = {
        "in hand": runner.in_hand.size,
        "of the runner": len(runner.requests),
        "in the batch": runner.input_batch.num_reqs,
    }
    if core is not None:  # the worker of one process is in the engine's
        pool = core.scheduler.kv_cache_manager.block_pool
        # The one that is never free is vLLM's null block.
        found["blocks"] = pool.num_gpu_blocks - pool.get_num_free_blocks() - 1
        found["of the scheduler"] = len(core.scheduler.requests)
    return found
