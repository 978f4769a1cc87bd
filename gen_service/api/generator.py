"""What the API needs of an engine."""

from collections.abc import AsyncIterator, Collection
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ttmark.gen_service.engine import Delta, GenerationRequest, ReadingRequest
from ttmark.shared.tokenization import TextTokenizer


class Generator(Protocol):
    """A model that continues prompts; `ttmark.gen_service.engine.Engine` is one."""

    @property
    def ready(self) -> bool:
        """Whether requests are taken."""

    @property
    def alive(self) -> bool:
        """False once no request will ever be taken again, although nobody stopped it."""

    @property
    def model_id(self) -> str:
        """Name under which the model is served."""

    @property
    def context_length(self) -> int:
        """Most tokens of prompt and completion together."""

    @property
    def vocab_size(self) -> int:
        """Number of token ids."""

    @property
    def tokenizer(self) -> TextTokenizer:
        """The model's tokenizer."""

    @property
    def eos_token_ids(self) -> Collection[int]:
        """Tokens that end a completion."""

    @property
    def start_token_id(self) -> int | None:
        """What stands before a text that is read without a prompt; None where the model has no such token."""

    def check_queue(self, tenant: str) -> None:
        """Cheaply, whether `generate` would refuse a tenant's request for want of a place.

        Raises:
            Overloaded: it would.
        """

    async def read(self, request: ReadingRequest) -> NDArray[np.float64]:
        """Log-probabilities (nats) of a text's tokens after those before them [tokens]; cancelling ends it.

        Raises:
            Overloaded, Draining, ContextTooLong, OutOfTime, SequenceFailed, EngineDied: as `generate`.
        """

    def generate(self, request: GenerationRequest) -> AsyncIterator[Delta]:
        """Pieces of one completion, the last with `finish_reason` and `report`; closing it cancels.

        Raises:
            Overloaded, Draining, ContextTooLong, OutOfTime, SequenceFailed, EngineDied: see
                `ttmark.gen_service.engine.errors`.
        """
