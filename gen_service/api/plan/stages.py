"""What optional features do to a request on its way, at three places: its prompt, its text, its answer.

A feature has a `Hook` for all requests, and a `RequestStage` for each request that asks for it. Whatever they
do not define does nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ttmark.gen_service.api.plan.prompts import Prompt
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.gen_service.decoding.request import (
    Constraint,
    Delta,
    FinishReason,
    Marking,
    MarkReport,
    TokenLogprob,
)
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.service_errors import BadRequest
from ttmark.shared.schemas.fields import RequestPart
from ttmark.shared.schemas.generation.chat import TextFormat
from ttmark.shared.schemas.generation.sampling import OPTIONAL_FIELDS, SamplingFields
from ttmark.shared.schemas.generation.tools import CallDelta

DEFAULT_RULE = "default"
"""Of the marking policy, where no other rule is for the request."""
ManifestDemand = Literal["always", "never"]


@dataclass(frozen=True, slots=True)
class MarkingChoice:
    """The marking, or why there is none.

    Attributes:
        marking: with the first of `pool`.
        block_size: tokens of a block: those of the key, even where it is not used, else one.
        pool: the keys one of which each completion is marked with: those of the version's pool, or that of
            the payload alone.
        rule: of the marking policy, that decided.
        manifest: whether that rule wants signed manifests; None: it says nothing of them.
    """

    marking: Marking | None
    unmarked_reason: str | None = None
    block_size: int = 1
    pool: tuple[bytes, ...] = field(default=(), repr=False)
    rule: str = DEFAULT_RULE
    manifest: ManifestDemand | None = None


@dataclass(slots=True)
class CompletionState:
    """One completion as far as it has come.

    Attributes:
        text: the answer, without reasoning and calls.
        log10_p: its exact p-value, once it has ended; None where it was not to be marked.
    """

    text: str = ""
    reasoning: str = ""
    calls: list[CallDelta] = field(default_factory=list)
    reasoning_tokens: int = 0
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    report: MarkReport | None = None
    reused_tokens: int = 0
    log10_p: float | None = None

    def add(self, delta: Delta) -> None:
        """What came next."""
        self.text += delta.text
        self.reasoning += delta.reasoning
        for piece in delta.calls:
            if piece.function.name is None:
                self.calls[piece.index].function.arguments += piece.function.arguments
            else:
                self.calls.append(piece.model_copy(deep=True))
        self.token_ids += delta.token_ids
        self.logprobs += delta.logprobs or ()
        self.finish_reason = delta.finish_reason
        self.report = delta.report
        self.reused_tokens = delta.reused_tokens


class RequestStage:
    """What a feature does to one request.

    Attributes:
        shown: tools, which the chat template shows.
        marks: special tokens that show in texts, and the character that stands for each.
        text_start: characters that it puts before each text.
    """

    shown: Sequence[Mapping[str, Any]] = ()
    marks: Mapping[int, str] = {}
    text_start: int = 0

    async def constrain(self, prompts: Sequence[Prompt]) -> Constraint | None:
        """The prompt's place: what completions may be, once the prompts are known; None: anything.

        Raises:
            ServiceError: what is asked for cannot be kept to.
        """
        return None

    def settle(self, choice: MarkingChoice, *, constrained: bool) -> None:
        """Takes note of how the request is marked, and whether its texts are `constrained`.

        Raises:
            ServiceError: the request asks for what cannot be.
        """

    def read(self, delta: Delta) -> Delta:
        """The text's place: a delta with its text, reasoning and calls told apart."""
        return delta

    def held(self, index: int, state: CompletionState, text: str) -> str:
        """What a client holds of a completion that has ended, and may ask detection about; in a thread."""
        return text

    def put(self, delta: Delta, sent: str) -> Delta:
        """The answer's place: a delta as it goes out, behind the text that was `sent` of its completion."""
        return delta

    async def end(self, index: int, state: CompletionState) -> str:
        """What is put behind a completion that has ended.

        Raises:
            ServiceError: it cannot be made.
        """
        return ""

    def notes(self, response_id: str) -> Mapping[str, Any]:
        """Fields of the answer's `watermark` block."""
        return {}


class Hook:
    """What a feature does to requests.

    Attributes:
        fields: of a request, any of which asks for the feature.
        models: those whose every request it is for; None: all.
        rules: by whose names requests are counted that they decided on.
    """

    fields: Collection[str] = ()
    models: Collection[str] | None = ()
    rules: Sequence[str] = ()

    def serve(self, name: str, model: ServedModel) -> None:
        """A model is served, before the first request."""

    def earlier_answer(self, text: str) -> str:
        """What the model wrote of an answer that comes back to it."""
        return text

    def choose(
        self,
        choice: MarkingChoice,
        body: SamplingFields,
        caller: Principal,
        prompt_tokens: int,
        most_tokens: int,
    ) -> MarkingChoice:
        """The marking of a request.

        Args:
            prompt_tokens: of all prompts.
            most_tokens: that all completions of the request together may have.

        Raises:
            PolicyDenied: the request is refused.
        """
        return choice

    def stage(self, body: RequestPart, model: str) -> RequestStage | None:
        """What is done to a request that asks for the feature, or to any of `models`.

        Raises:
            ServiceError: the request asks for what cannot be.
        """


def open_stages(hooks: Iterable[Hook], body: RequestPart, model: str) -> list[RequestStage]:
    """The stages of a request.

    Raises:
        ServiceError: it asks for what cannot be, or for a feature that is not there.
    """
    asked = {name for name in OPTIONAL_FIELDS if not isinstance(_value(body, name), TextFormat | None)}
    wanted = [hook for hook in hooks if hook.models is None or model in hook.models or asked & {*hook.fields}]
    for name in sorted(asked - {name for hook in hooks for name in hook.fields}):
        raise BadRequest(f"{name}: not supported by this service.", param=name)
    return [stage for hook in wanted if (stage := hook.stage(body, model)) is not None]


def _value(body: object, path: str) -> object:
    for name in path.split("."):
        body = getattr(body, name, None)
    return body
