"""A request in hand, on the API's side."""

import asyncio
import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from vllm.sampling_params import RequestOutputKind, SamplingParams

from ttmark.gen_service.decoding.request import ReadingRequest
from ttmark.gen_service.engine.stream import Mailbox
from ttmark.gen_service.vllm_engine.worker_messages import Ticket
from ttmark.gen_service.vllm_engine.worker_requests import TICKET


@dataclass(eq=False, slots=True)
class Job:
    """A request in hand.

    Attributes:
        tokens: that vLLM computes beforehand.
        most_tokens: that it may make.
        whole_prompt: whether nothing is taken from the prefix cache.
        started: whether it has had a place in a step.
        logprobs: of the tokens of a text that was read.
    """

    ticket: Ticket
    tokens: list[int]
    most_tokens: int
    mailbox: Mailbox
    whole_prompt: bool
    arrived: float = field(default_factory=time.monotonic)
    started: bool = False
    logprobs: NDArray[np.float64] | None = None
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None

    @property
    def tenant(self) -> str:
        """Whose it is."""
        return self.ticket.request.tenant

    @property
    def reading(self) -> bool:
        """Whether a text is read, and nothing written."""
        return isinstance(self.ticket.request, ReadingRequest)

    def parameters(self) -> SamplingParams:
        """What vLLM is told: to go on until it is told to stop, and the ticket's name."""
        return SamplingParams(
            max_tokens=self.most_tokens,
            temperature=0.0,
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
            extra_args={TICKET: self.ticket.name},
            skip_reading_prefix_cache=self.whole_prompt,
        )
