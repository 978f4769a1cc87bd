"""Our part of vLLM's configuration, which every worker gets with it."""

from dataclasses import dataclass

from ttmark.gen_service.vllm_engine.lifeline import Lifeline


@dataclass(frozen=True, slots=True)
class Additional:
    """vLLM's `additional_config`.

    Attributes:
        scratch_blocks: of each KV group.
        service: what the workers end with.
    """

    scratch_blocks: int
    service: Lifeline

    def compute_hash(self) -> str:
        """By which vLLM finds the kernels that an earlier process compiled."""
        return str(self.scratch_blocks)
