"""Answers in the shape of `/v1/chat/completions`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ttmark.gen_service.api.account import Answer, Outcome
from ttmark.gen_service.api.format import ChoicesFormat
from ttmark.gen_service.api.plan import Plan
from ttmark.gen_service.api.token_text import finite
from ttmark.gen_service.api.tool_calls import Calls
from ttmark.gen_service.engine import Delta, TokenLogprob
from ttmark.shared.schemas.chat import (
    AssistantMessage,
    ChatChoice,
    ChatChunk,
    ChatChunkChoice,
    ChatDelta,
    ChatLogprobs,
    ChatRequest,
    ChatResponse,
    ChatTokenLogprob,
    ChatTopLogprob,
)


class ChatFormat(ChoicesFormat):
    """Writes one response; the first chunk of each message names the role."""

    whole_schema = ChatResponse
    chunk_schema = ChatChunk

    def __init__(self, plan: Plan, _: ChatRequest) -> None:
        super().__init__(plan)
        self._calls = [Calls(plan.tools) for _ in plan.requests] if plan.tools else None
        self._reasoning = ""  # of the delta at hand

    def delta(self, delta: Delta, answer: Answer | None) -> Iterator[bytes]:
        """A chunk, if there is anything to say; what may become a call is held back until it is seen."""
        self._reasoning = delta.reasoning
        if self._calls is not None:
            text = self._calls[delta.index].read(delta.text, final=delta.finish_reason is not None)
            # A piece of a call alone makes a chunk too.
            delta = replace(delta, text=text)
        yield from super().delta(delta, answer)

    def _says_something(self, delta: Delta) -> bool:
        pending = self._calls is not None and self._calls[delta.index].pending
        return bool(pending or delta.reasoning) or super()._says_something(delta)

    def _choice(self, text: str, common: dict[str, Any], *, first: bool) -> ChatChunkChoice:
        calls = None
        if self._calls is not None:
            read = self._calls[common["index"]]
            calls = read.take() or None
            common["finish_reason"] = read.finish_reason(common["finish_reason"])
        reasoning = self._reasoning or None
        content = text if text or (first and not calls and not reasoning) else None
        delta = ChatDelta(
            role="assistant" if first else None,
            reasoning_content=reasoning,
            content=content,
            tool_calls=calls,
        )
        return ChatChunkChoice(delta=delta, **common)

    def _whole_choice(self, outcome: Outcome, common: dict[str, Any]) -> ChatChoice:
        words, calls = outcome.text, None
        if self._calls is not None:
            read = self._calls[common["index"]]
            words, calls = read.read(outcome.text, final=True), read.made or None
            common["finish_reason"] = read.finish_reason(common["finish_reason"])
        reasoning = outcome.reasoning or None
        message = AssistantMessage(
            reasoning_content=reasoning,
            content=words if words or not (calls or reasoning) else None,
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
        text, utf8 = self._tokens.text(token_id), self._tokens.utf8(token_id)
        return {"token": text, "logprob": finite(logprob), "bytes": utf8}
