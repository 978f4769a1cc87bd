"""What the routes work with; built by the composition root."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ttmark.gen_service.api.chat_template import ChatTemplate
from ttmark.gen_service.api.control_tokens import ControlTokenRule, ConversationEncoder
from ttmark.gen_service.api.watermark_report import ReceiptRule
from ttmark.gen_service.decoding.request import Delta, GenerationRequest, ReadingRequest
from ttmark.gen_service.features.manifests.provenance import LabelRule, ManifestRule
from ttmark.gen_service.features.policy.marking_policy import MarkingPolicy
from ttmark.gen_service.features.structured.answer_marks import AnswerMarks, answer_marks
from ttmark.gen_service.features.structured.json_grammar import JsonGrammars
from ttmark.gen_service.features.structured.reasoning import Reasoning, ReasoningRule
from ttmark.shared.http.service_errors import ModelNotFound
from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.schemas.generation.sampling import SamplingDefaults
from ttmark.shared.tokenization import TextTokenizer


class Generator(Protocol):
    """A model that continues prompts; `ttmark.gen_service.engine.Engine` is one.

    Attributes:
        model_id: name under which the model is served.
        context_length: most tokens of prompt and completion together.
        vocab_size: number of token ids.
        eos_token_ids: tokens that end a completion.
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
        reasoning_rule: in which tags the model reasons before it answers.
        created: Unix time at which it was loaded.
        grammars: makes grammars over its tokens.
        answers: the marks of calls and reasoning.
        conversations: reads conversations; None where there is no chat template.
        most_characters: of a prompt; more cannot fit the context, whatever its tokens are.
    """

    generator: Generator
    chat_template: ChatTemplate | None = None
    control_tokens: ControlTokenRule = "text"
    sampling: SamplingDefaults = field(default_factory=SamplingDefaults)
    reasoning_rule: ReasoningRule = "auto"
    created: int = field(default_factory=lambda: int(time.time()))
    grammars: JsonGrammars = field(init=False)
    answers: AnswerMarks = field(init=False)
    conversations: ConversationEncoder | None = field(init=False)
    most_characters: int = field(init=False)

    def __post_init__(self) -> None:
        tokenizer = self.generator.tokenizer
        object.__setattr__(self, "grammars", JsonGrammars(tokenizer, self.generator.eos_token_ids))
        template = self.chat_template
        ends = self.generator.eos_token_ids
        marks = answer_marks(template, tokenizer, ends, self.reasoning_rule)
        object.__setattr__(self, "answers", marks)
        conversations = ConversationEncoder(tokenizer, template, self.control_tokens) if template else None
        object.__setattr__(self, "conversations", conversations)
        longest = max(map(len, tokenizer.backend.get_vocab()))
        object.__setattr__(self, "most_characters", longest * self.generator.context_length)

    def reasoning(self, prompt: str) -> Reasoning | None:
        return self.answers.reasoning(prompt) if self.answers.thoughts else None


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What one request may ask for beyond what its schema limits.

    Attributes:
        max_completions: prompts times completions of each.
        max_read_tokens: tokens of the texts of a request for readings, together.
        keep_alive_seconds: silence after which a stream sends a comment, so that proxies keep it open.
    """

    max_completions: int = 64
    max_read_tokens: int = 131_072
    keep_alive_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class GenerationBackend:
    """Models by the id that requests name, keys, and limits.

    Attributes:
        default_keys: key ids used when a request names none and the key is the caller's tenant's and fits the
            model's tokenizer; the first that does.
        policy: which texts are marked.
        receipts: what is said of the detectability of completions, and to whom.
        manifests: which completions end in a signed manifest.
        labels: the visible label of completions.
        opening_bits: surprise of a completion's tokens before its first mark.
        ignore_unknown_fields: answers requests that have fields which nobody knows.
    """

    models: Mapping[str, ServedModel]
    keys: KeyCache
    default_keys: Sequence[str] = ()
    limits: RequestLimits = field(default_factory=RequestLimits)
    policy: MarkingPolicy = field(default_factory=MarkingPolicy)
    receipts: ReceiptRule = field(default_factory=ReceiptRule)
    manifests: ManifestRule = field(default_factory=ManifestRule)
    labels: LabelRule = field(default_factory=LabelRule)
    opening_bits: float = 0.0
    ignore_unknown_fields: bool = False

    def model(self, model_id: str) -> ServedModel:
        """The model that a request names.

        Raises:
            ModelNotFound: there is no such model here.
        """
        try:
            return self.models[model_id]
        except KeyError:
            near = next((name for name in self.models if name.lower() == model_id.lower()), None)
            hint = "GET /v1/models lists them."
            if near:
                hint = f"did you mean {near!r}?"
            elif len(self.models) == 1:
                hint = f"this service has {next(iter(self.models))!r} alone."
            raise ModelNotFound(f"There is no such model; {hint}", param="model") from None
