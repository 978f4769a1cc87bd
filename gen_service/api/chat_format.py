"""Outcomes and pieces in the shape of `/v1/chat/completions`."""

from collections.abc import Sequence

from gen_service.api.merge import Piece
from gen_service.api.outcome import Outcomes
from gen_service.api.plan import Plan
from gen_service.api.token_text import TokenText, finite
from gen_service.engine.request import TokenLogprob
from shared.schemas.chat import (
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
from shared.schemas.sampling import Usage
from shared.schemas.watermark_block import WatermarkBlock


class ChatFormat:
    """Writes one response."""

    def __init__(self, plan: Plan, created: int, tokens: TokenText) -> None:
        self._plan = plan
        self._created = created
        self._tokens = tokens
        self._opened: set[int] = set()

    def whole(self, outcomes: Outcomes, usage: Usage, watermark: WatermarkBlock) -> ChatResponse:
        """The response that is not streamed."""
        return ChatResponse(
            id=self._plan.response_id,
            created=self._created,
            model=self._plan.model_id,
            choices=[
                ChatChoice(
                    index=index,
                    message=AssistantMessage(content=outcome.text),
                    logprobs=self._logprobs(outcome.logprobs),
                    finish_reason=outcome.finish_reason or "stop",
                    token_ids=outcome.token_ids if self._plan.return_token_ids else None,
                    prompt_token_ids=self._prompt_token_ids(index),
                )
                for index, outcome in enumerate(outcomes.completions)
            ],
            usage=usage,
            watermark=watermark,
        )

    def chunk(self, piece: Piece, watermark: WatermarkBlock | None) -> ChatChunk:
        """An event of a stream; the first of each message names the role."""
        index, delta = piece.index, piece.delta
        first = index not in self._opened
        self._opened.add(index)
        choice = ChatChunkChoice(
            index=index,
            delta=ChatDelta(
                role="assistant" if first else None, content=delta.text if first or delta.text else None
            ),
            logprobs=self._logprobs(delta.logprobs or ()),
            finish_reason=delta.finish_reason,
            token_ids=list(delta.token_ids) if self._plan.return_token_ids else None,
            prompt_token_ids=self._prompt_token_ids(index) if first else None,
        )
        return self._chunk([choice], None, watermark)

    def last_chunk(self, usage: Usage, watermark: WatermarkBlock) -> ChatChunk:
        """The event after the last piece, with the token counts."""
        return self._chunk([], usage, watermark)

    def _chunk(
        self, choices: list[ChatChunkChoice], usage: Usage | None, watermark: WatermarkBlock | None
    ) -> ChatChunk:
        return ChatChunk(
            id=self._plan.response_id,
            created=self._created,
            model=self._plan.model_id,
            choices=choices,
            usage=usage,
            watermark=watermark,
        )

    def _prompt_token_ids(self, index: int) -> list[int] | None:
        return list(self._plan.prompt_of(index).token_ids) if self._plan.return_token_ids else None

    def _logprobs(self, entries: Sequence[TokenLogprob]) -> ChatLogprobs | None:
        if self._plan.requests[0].sampling.logprobs is None:
            return None
        return ChatLogprobs(
            content=[
                ChatTokenLogprob(
                    token=self._tokens.text(entry.token_id),
                    logprob=finite(entry.logprob),
                    bytes=self._tokens.utf8(entry.token_id),
                    top_logprobs=[self._top(token_id, logprob) for token_id, logprob in entry.top],
                )
                for entry in entries
            ]
        )

    def _top(self, token_id: int, logprob: float) -> ChatTopLogprob:
        return ChatTopLogprob(
            token=self._tokens.text(token_id), logprob=finite(logprob), bytes=self._tokens.utf8(token_id)
        )
