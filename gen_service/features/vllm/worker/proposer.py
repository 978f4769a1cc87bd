"""The drafts of a step: what is left of the blocks that were decided in it."""

from collections.abc import Callable
from typing import Any


class TandemProposer:
    """vLLM's interface of a proposer; the runner says what it proposes.

    Attributes:
        drafts: of each request of the batch.
    """

    def __init__(self, vllm_config: Any) -> None:
        del vllm_config
        self.drafts: Callable[[], list[list[int]]] = list

    def load_model(self, *_: Any, **__: Any) -> None:
        """There is no second model."""

    def propose(self, *_: Any, **__: Any) -> list[list[int]]:
        return self.drafts()
