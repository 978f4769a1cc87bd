"""A model as the routes know it: what continues prompts, and how a conversation becomes one."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ttmark.gen_service.api.conversation.chat_template import ChatTemplate
from ttmark.gen_service.api.conversation.control_tokens import ControlTokenRule, ConversationEncoder
from ttmark.gen_service.decoding.request import Delta, GenerationRequest, ReadingRequest
from ttmark.shared.schemas.generation.sampling import SamplingDefaults
from ttmark.shared.tokenization import TextTokenizer


class Generator(Protocol):
    """A model that continues prompts; `ttmark.gen_service.engine.Engine` is one.

    Attributes:
        context_length: most tokens of prompt and completion together.
        start_token_id: what stands before a text that is read without a prompt; None where the model has no
            such token.
    """

    model_id: str
    context_length: int
    vocab_size: int
    tokenizer: TextTokenizer
    eos_token_ids: tuple[int, ...]
    start_token_id: int | None

    @property
    def ready(self) -> bool:
        """Whether requests are taken."""

    @property
    def alive(self) -> bool:
        """False once no request will ever be taken again, although nobody stopped it."""

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


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model and how a conversation becomes its prompt.

    Attributes:
        chat_template: None where the tokenizer has none.
        control_tokens: what becomes of control tokens such as `<|im_end|>` in messages.
        sampling: what holds where a request names none.
        created: Unix time at which it was loaded.
        conversations: reads conversations; None where there is no chat template.
        most_characters: of a prompt; more cannot fit the context, whatever its tokens are.
    """

    generator: Generator
    chat_template: ChatTemplate | None = None
    control_tokens: ControlTokenRule = "text"
    sampling: SamplingDefaults = field(default_factory=SamplingDefaults)
    created: int = field(default_factory=lambda: int(time.time()))
    conversations: ConversationEncoder | None = field(init=False)
    most_characters: int = field(init=False)

    def __post_init__(self) -> None:
        tokenizer = self.generator.tokenizer
        template = self.chat_template
        conversations = ConversationEncoder(tokenizer, template, self.control_tokens) if template else None
        object.__setattr__(self, "conversations", conversations)
        longest = max(map(len, tokenizer.backend.get_vocab()))
        object.__setattr__(self, "most_characters", longest * self.generator.context_length)
