"""Answers in the shape of `/v1/chat/completions`."""

from collections.abc import Sequence
from typing import Any

from ttmark.gen_service.api.format import ChoicesFormat
from ttmark.gen_service.api.plan import Plan
from ttmark.gen_service.api.token_text import finite
from ttmark.gen_service.engine import TokenLogprob
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

    def _choice(self, text: str, common: dict[str, Any], *, first: bool) -> ChatChunkChoice:
        delta = ChatDelta(role="assistant" if first else None, content=text if first or text else None)
        return ChatChunkChoice(delta=delta, **common)

    def _whole_choice(self, text: str, common: dict[str, Any]) -> ChatChoice:
        return ChatChoice(message=AssistantMessage(content=text), **common)

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
