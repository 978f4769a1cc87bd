"""What is changed of vLLM's workers: scratch blocks, tickets, and the runner."""

import copy
import pickle
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch.distributed
import zmq
from vllm.distributed.parallel_state import get_tp_group
from vllm.v1.kv_cache_interface import FullAttentionSpec, MLAAttentionSpec, SlidingWindowSpec

from ttmark.gen_service.features.structured.grammars.json_grammar import ANY_OBJECT, JsonGrammars
from ttmark.gen_service.features.vllm.worker.probe import BranchLogits
from ttmark.gen_service.features.vllm.worker.probe_reuse import KeptRows
from ttmark.gen_service.features.vllm.worker.tandem_runner import TandemRunner
from ttmark.gen_service.features.vllm.worker.worker_messages import StepReport, WorkerOpening, open_ticket
from ttmark.gen_service.features.vllm.worker.worker_requests import WorkerRequests
from ttmark.shared.tokenization import TextTokenizer

if TYPE_CHECKING:
    Worker = Any
else:
    Worker = object

_GRAMMARS_KEPT = 64
_BRANCHABLE = (FullAttentionSpec, MLAAttentionSpec, SlidingWindowSpec)


class UnsupportedModel(Exception):
    """The model's layers keep something else than keys and values of tokens."""


class TandemWorker(Worker):  # type: ignore[misc]
    """Mixed in before a worker of vLLM's; the methods with a plain name are called by `collective_rpc`."""

    def init_device(self) -> None:
        self.vllm_config.additional_config.service.hold()
        super().init_device()
        kind = type(self.model_runner)
        self.model_runner.__class__ = type(f"Tandem{kind.__name__}", (TandemRunner, kind), {})

    def determine_available_memory(self) -> int:
        """What vLLM found, less the scratch blocks."""
        pages = sum(int(spec.page_size_bytes) for spec in self._checked_specs())
        return int(super().determine_available_memory()) - self._scratch_blocks * pages

    def initialize_from_config(self, kv_cache_config: Any) -> None:
        """Allocates the scratch blocks of every KV group behind the blocks that the scheduler knows."""
        config = copy.deepcopy(kv_cache_config)
        blocks, more = config.num_blocks, self._scratch_blocks * len(config.kv_cache_groups)
        for tensor in config.kv_cache_tensors:
            if tensor.layer_stride == tensor.block_stride * blocks:  # layer by layer
                tensor.layer_stride += tensor.block_stride * more
                tensor.offset = tensor.offset // blocks * (blocks + more)
            tensor.size = tensor.size // blocks * (blocks + more)
        config.num_blocks = blocks + more
        super().initialize_from_config(config)

    def ttmark_open(self, opening: bytes) -> None:
        told: WorkerOpening = pickle.loads(opening)  # noqa: S301 - from our own parent process
        tokenizer = TextTokenizer.load(told.folder)
        grammars = JsonGrammars(tokenizer, told.eos_token_ids)
        grammars.submit(ANY_OBJECT)  # the first takes seconds
        runner = self.model_runner
        probe = BranchLogits(runner, self._scratch_blocks)
        runner.kept = KeptRows(probe)
        runner.in_hand = WorkerRequests(
            tokenizer,
            told.eos_token_ids,
            told.max_branches,
            probe.logits,
            self._agree,
            _sender(told.address) if self.rank == 0 else None,
        )
        runner.drafter.drafts = runner.propose_drafts
        self._compile = lru_cache(_GRAMMARS_KEPT)(grammars.compile)

    def ttmark_take(self, sealed: bytes) -> None:
        self.model_runner.in_hand.take(open_ticket(sealed, self._compile))

    def ttmark_forget(self, name: str) -> None:
        self.model_runner.in_hand.forget(name)

    def ttmark_size(self) -> int:
        return int(self.model_runner.in_hand.size)

    @property
    def _scratch_blocks(self) -> int:
        return int(self.vllm_config.additional_config.scratch_blocks)

    def _checked_specs(self) -> list[Any]:
        specs = list(self.get_kv_cache_spec().values())
        other = sorted({type(spec).__name__ for spec in specs if type(spec) not in _BRANCHABLE})
        if other:
            raise UnsupportedModel(f"caches of type {', '.join(other)} cannot be branched")
        return specs

    def _agree(self, failed: dict[str, str]) -> dict[str, str]:
        """Failures of all tensor-parallel ranks together."""
        group = get_tp_group()
        if group.world_size == 1:
            return failed
        everybody: list[Any] = [None] * group.world_size
        torch.distributed.all_gather_object(everybody, failed, group=group.cpu_group)
        return {name: why for each in everybody for name, why in each.items()}


def _sender(address: str) -> Callable[[StepReport], None]:
    """Sends reports to the process that opened the worker; never waits."""
    socket = zmq.Context.instance().socket(zmq.PUSH)
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.LINGER, 0)
    socket.connect(address)
    return lambda report: socket.send(pickle.dumps(report))
