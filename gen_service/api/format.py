"""What responses look like: events, and the answers with choices of two APIs."""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel

from ttmark.gen_service.api.account import Answer
from ttmark.gen_service.api.plan.request_plan import Plan
from ttmark.gen_service.api.plan.stages import CompletionState
from ttmark.gen_service.decoding.request import Delta, TokenLogprob
from ttmark.shared.byte_reading import LEAST_LOGPROB
from ttmark.shared.http.service_errors import ServiceError, openai_envelope
from ttmark.shared.schemas.fields import ErrorEnvelope
from ttmark.shared.schemas.generation.chat import (
    AssistantMessage,
    ChatChoice,
    ChatChunk,
    ChatChunkChoice,
    ChatDelta,
    ChatLogprobs,
    ChatResponse,
    ChatTokenLogprob,
    ChatTopLogprob,
)
from ttmark.shared.schemas.generation.completions import (
    CompletionChoice,
    CompletionLogprobs,
    CompletionRequest,
    CompletionResponse,
)
from ttmark.shared.schemas.generation.sampling import ChoiceFields, Usage
from ttmark.shared.schemas.generation.tools import MadeCall
from ttmark.shared.schemas.generation.watermark_block import WatermarkBlock
from ttmark.shared.tokenization import Detokenizer, TextTokenizer

DONE = b"data: [DONE]\n\n"


def event(data: BaseModel, *, name: str = "", without: Collection[str] = ()) -> bytes:
    """One event, of the type `name` if there is one; fields in `without` are left out of its data."""
    head = b"event: " + name.encode() + b"\n" if name else b""
    return head + b"data: " + data.model_dump_json(exclude=set(without)).encode() + b"\n\n"


def finite(logprob: float) -> float:
    """A log probability as JSON can say it: OpenAI's API has a number for minus infinity."""
    return max(logprob, LEAST_LOGPROB)


class TokenText(NamedTuple):
    """A token by itself.

    Attributes:
        text: a space in front of a word is kept, a special token shows its name, and a part of a character
            its bytes, as in OpenAI's API: `bytes:\\xf0\\x9f`.
        raw: the bytes of that.
    """

    text: str
    raw: bytes


@cache
def token_text(tokenizer: TextTokenizer, token_id: int) -> TokenText:
    # Decoders may drop the space at the start of a text, so the token is read as the second of two.
    raw = tokenizer.bytes_of(token_id, after=token_id)
    raw = raw or (tokenizer.backend.id_to_token(token_id) or "").encode()
    try:
        return TokenText(raw.decode(), raw)
    except UnicodeDecodeError:
        return TokenText("bytes:" + "".join(f"\\x{byte:02x}" for byte in raw), raw)


class ChoicesFormat(ABC):
    """An answer of choices, streamed as chunks: the watermark is in the last, which is one with the token
    counts if asked for. Events are bytes as they are sent."""

    whole_schema: ClassVar[type[BaseModel]]
    chunk_schema: ClassVar[type[BaseModel]]

    def __init__(self, plan: Plan, body: ChoiceFields) -> None:
        self._plan = plan
        self._body = body
        self._shows_blocks = body.watermark is not None and bool(body.watermark.show_blocks)
        self._tokenizer = plan.model.generator.tokenizer
        self._created = int(time.time())
        self._begun: set[int] = set()

    @abstractmethod
    def _choice(self, part: Delta, common: dict[str, Any], *, first: bool) -> BaseModel:
        """A piece of a completion, `first` if nothing of it was sent before."""

    @abstractmethod
    def _whole_choice(self, state: CompletionState, common: dict[str, Any]) -> BaseModel:
        """A whole completion."""

    @abstractmethod
    def _logprobs(self, index: int, entries: Sequence[TokenLogprob], /) -> BaseModel:
        """Log probabilities of the tokens that completion number `index` goes on with."""

    def whole(self, answer: Answer) -> BaseModel:
        choices = [
            self._whole_choice(state, self._common(index, state, first=True))
            for index, state in enumerate(answer.completions)
        ]
        return self._envelope(self.whole_schema, choices, answer.usage, answer.watermark)

    def opening(self) -> Iterator[bytes]:
        """Events before the first delta: none, the first chunk is that of a delta."""
        yield from ()

    def delta(self, delta: Delta, answer: Answer | None) -> Iterator[bytes]:
        """Events of a delta; with the last of all comes the answer."""
        watermark = None if answer is None or self._body.include_usage else answer.watermark
        if watermark is None and not self._says_something(delta):
            return
        first = delta.index not in self._begun
        self._begun.add(delta.index)
        common = self._common(delta.index, delta, first=first)
        common["watermarked"] = delta.watermarked if self._shows_blocks else None
        yield self._chunk([self._choice(delta, common, first=first)], None, watermark)

    def closing(self, answer: Answer) -> Iterator[bytes]:
        if self._body.include_usage:
            yield self._chunk([], answer.usage, answer.watermark)
        yield DONE

    def failed(self, error: ServiceError) -> Iterator[bytes]:
        """What ends a stream that cannot go on: the error, without the end that a good stream has."""
        yield event(ErrorEnvelope.model_validate(openai_envelope(error)))

    def _common(self, index: int, part: CompletionState | Delta, *, first: bool) -> dict[str, Any]:
        plan = self._plan
        wants_logprobs = plan.requests[index].sampling.logprobs is not None
        with_ids = bool(self._body.return_token_ids)
        return {
            "index": index,
            "logprobs": self._logprobs(index, part.logprobs or ()) if wants_logprobs else None,
            "finish_reason": part.finish_reason,
            "token_ids": list(part.token_ids) if with_ids else None,
            "prompt_token_ids": list(plan.requests[index].prompt_ids) if first and with_ids else None,
        }

    def _envelope(
        self,
        schema: type[BaseModel],
        choices: Sequence[BaseModel],
        usage: Usage | None,
        watermark: WatermarkBlock | None,
    ) -> BaseModel:
        fields: dict[str, Any] = {
            "id": self._plan.response_id,
            "created": self._created,
            "model": self._plan.model_id,
            "choices": choices,
            "usage": usage,
            "watermark": watermark,
        }
        return schema(**fields)

    def _chunk(
        self, choices: Sequence[BaseModel], usage: Usage | None, watermark: WatermarkBlock | None
    ) -> bytes:
        chunk = self._envelope(self.chunk_schema, choices, usage, watermark)
        # Who asks for token counts gets null in the chunks before them, who does not gets no field.
        return event(chunk, without=() if self._body.include_usage else ("usage",))

    def _says_something(self, delta: Delta) -> bool:
        token_ids = self._body.return_token_ids and delta.token_ids
        said = delta.text or delta.reasoning or delta.calls
        return bool(said or delta.finish_reason or delta.logprobs or token_ids)


class CompletionFormat(ChoicesFormat):
    """Writes one response; `echo` puts the prompt in front of each completion."""

    whole_schema = CompletionResponse
    chunk_schema = CompletionResponse

    def __init__(self, plan: Plan, body: CompletionRequest) -> None:
        super().__init__(plan, body)
        self._echo = bool(body.echo)
        self._offsets = Counter(dict.fromkeys(range(len(plan.requests)), plan.text_start))
        self._texts = [Detokenizer(self._tokenizer) for _ in plan.requests]

    def _choice(
        self, part: Delta | CompletionState, common: dict[str, Any], *, first: bool
    ) -> CompletionChoice:
        echoed = self._plan.prompt_of(common["index"]).text if first and self._echo else ""
        return CompletionChoice(text=echoed + part.text, **common)

    def _whole_choice(self, state: CompletionState, common: dict[str, Any]) -> CompletionChoice:
        return self._choice(state, common, first=True)

    def _logprobs(self, index: int, entries: Sequence[TokenLogprob]) -> CompletionLogprobs:
        offsets = []
        for entry in entries:
            offsets.append(self._offsets[index])
            self._offsets[index] += len(self._texts[index].push(entry.token_id))
        return CompletionLogprobs(
            tokens=[token_text(self._tokenizer, entry.token_id).text for entry in entries],
            token_logprobs=[finite(entry.logprob) for entry in entries],
            top_logprobs=[self._top(entry) for entry in entries],
            text_offset=offsets,
        )

    def _top(self, entry: TokenLogprob) -> dict[str, float]:
        # The emitted token comes last so that its own value stands where two tokens read the same.
        candidates = [*reversed(entry.top), (entry.token_id, entry.logprob)]
        return {
            token_text(self._tokenizer, token_id).text: finite(logprob) for token_id, logprob in candidates
        }


class ChatFormat(ChoicesFormat):
    """Writes one response; the first chunk of each message names the role."""

    whole_schema = ChatResponse
    chunk_schema = ChatChunk

    def _choice(self, part: Delta, common: dict[str, Any], *, first: bool) -> ChatChunkChoice:
        calls, reasoning = list(part.calls) or None, part.reasoning or None
        content = part.text if part.text or (first and not calls and not reasoning) else None
        delta = ChatDelta(
            role="assistant" if first else None,
            reasoning_content=reasoning,
            content=content,
            tool_calls=calls,
        )
        return ChatChunkChoice(delta=delta, **common)

    def _whole_choice(self, state: CompletionState, common: dict[str, Any]) -> ChatChoice:
        calls = [MadeCall.model_validate(call.model_dump(exclude={"index"})) for call in state.calls] or None
        reasoning = state.reasoning or None
        message = AssistantMessage(
            reasoning_content=reasoning,
            content=state.text if state.text or not (calls or reasoning) else None,
            tool_calls=calls,
        )
        return ChatChoice(message=message, **common)

    def _logprobs(self, _: int, entries: Sequence[TokenLogprob]) -> ChatLogprobs:
        return ChatLogprobs(
            content=[
                ChatTokenLogprob(
                    **self._token(entry.token_id, entry.logprob),
                    top_logprobs=[ChatTopLogprob(**self._token(*each)) for each in entry.top],
                )
                for entry in entries
            ]
        )

    def _token(self, token_id: int, logprob: float) -> dict[str, Any]:
        token = token_text(self._tokenizer, token_id)
        return {"token": token.text, "logprob": finite(logprob), "bytes": list(token.raw)}
