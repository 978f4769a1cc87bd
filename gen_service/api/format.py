"""What a response looks like: one per API, and what the two that answer with choices have in common."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

from pydantic import BaseModel

from ttmark.gen_service.api.event_stream import DONE, event
from ttmark.gen_service.api.merge import IndexedDelta
from ttmark.gen_service.api.outcome import Ending, Outcome
from ttmark.gen_service.api.plan import Plan
from ttmark.gen_service.engine import Delta, TokenLogprob
from ttmark.shared.http.service_errors import ServiceError, openai_envelope
from ttmark.shared.schemas.bodies import ErrorEnvelope
from ttmark.shared.schemas.sampling import Usage
from ttmark.shared.schemas.watermark_block import WatermarkBlock

Answer = TypeVar("Answer", bound=BaseModel)


class Format(Protocol):
    """The shape of one API's responses; events are bytes as they are sent."""

    def whole(self, ending: Ending) -> BaseModel:
        """The response that is not streamed."""

    def opening(self) -> Iterator[bytes]:
        """Events before the first delta."""

    def delta(self, indexed: IndexedDelta, ending: Ending | None) -> Iterator[bytes]:
        """Events of a delta; with the last of all comes the ending."""

    def closing(self, ending: Ending) -> Iterator[bytes]:
        """Events after the last delta."""

    def failed(self, error: ServiceError) -> Iterator[bytes]:
        """Events that end a stream which cannot go on."""


class ChoicesFormat(ABC):
    """An answer of choices, streamed as chunks: the watermark is in the last, which is one with the token
    counts if asked for."""

    whole_schema: ClassVar[type[BaseModel]]
    chunk_schema: ClassVar[type[BaseModel]]

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._tokens = plan.model.token_text
        self._created = int(time.time())
        self._begun: set[int] = set()

    @abstractmethod
    def _choice(self, text: str, common: dict[str, Any], *, first: bool) -> BaseModel:
        """A piece of a completion, `first` if nothing of it was sent before."""

    def _whole_choice(self, outcome: Outcome, common: dict[str, Any]) -> BaseModel:
        """A whole completion."""
        return self._choice(outcome.text, common, first=True)

    @abstractmethod
    def _logprobs(self, index: int, entries: Sequence[TokenLogprob], /) -> BaseModel:
        """Log probabilities of the tokens that completion number `index` goes on with."""

    def whole(self, ending: Ending) -> BaseModel:
        choices = [
            self._whole_choice(outcome, self._common(index, outcome, first=True))
            for index, outcome in enumerate(ending.completions)
        ]
        return self._envelope(self.whole_schema, choices, ending.usage, ending.watermark)

    def opening(self) -> Iterator[bytes]:
        """Nothing: the first chunk is that of a delta."""
        yield from ()

    def delta(self, indexed: IndexedDelta, ending: Ending | None) -> Iterator[bytes]:
        """A chunk, if there is anything to say."""
        watermark = None if ending is None or self._plan.include_usage else ending.watermark
        if watermark is None and not self._says_something(indexed.index, indexed.delta):
            return
        first = indexed.index not in self._begun
        self._begun.add(indexed.index)
        common = self._common(indexed.index, indexed.delta, first=first)
        common["watermarked"] = indexed.delta.watermarked if self._plan.show_blocks else None
        yield self._chunk([self._choice(indexed.delta.text, common, first=first)], None, watermark)

    def closing(self, ending: Ending) -> Iterator[bytes]:
        """The token counts if asked for, and the end."""
        if self._plan.include_usage:
            yield self._chunk([], ending.usage, ending.watermark)
        yield DONE

    def failed(self, error: ServiceError) -> Iterator[bytes]:
        """The error, without the end that a good stream has."""
        yield event(ErrorEnvelope.model_validate(openai_envelope(error)))

    def _common(self, index: int, part: Outcome | Delta, *, first: bool) -> dict[str, Any]:
        """What a choice holds in either API."""
        plan = self._plan
        wants_logprobs = plan.requests[index].sampling.logprobs is not None
        with_prompt = first and plan.return_token_ids
        return {
            "index": index,
            "logprobs": self._logprobs(index, part.logprobs or ()) if wants_logprobs else None,
            "finish_reason": part.finish_reason,
            "token_ids": list(part.token_ids) if plan.return_token_ids else None,
            "prompt_token_ids": list(plan.prompt_of(index).token_ids) if with_prompt else None,
        }

    def _envelope(
        self,
        schema: type[Answer],
        choices: Sequence[BaseModel],
        usage: Usage | None,
        watermark: WatermarkBlock | None,
    ) -> Answer:
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
        return event(chunk, without=() if self._plan.include_usage else ("usage",))

    def _says_something(self, _: int, delta: Delta) -> bool:
        token_ids = self._plan.return_token_ids and delta.token_ids
        return bool(delta.text or delta.finish_reason or delta.logprobs or token_ids)
