"""Outcomes and pieces in the shape of `/v1/completions`."""

from collections.abc import Sequence

from gen_service.api.merge import Piece
from gen_service.api.outcome import Outcomes
from gen_service.api.plan import Plan
from gen_service.api.token_text import TokenText, finite, text_offsets
from gen_service.engine.request import TokenLogprob
from shared.schemas.completions import CompletionChoice, CompletionLogprobs, CompletionResponse
from shared.schemas.sampling import Usage
from shared.schemas.watermark_block import WatermarkBlock


class CompletionFormat:
    """Writes one response; `echo` puts the prompt in front of each completion."""

    def __init__(self, plan: Plan, created: int, tokens: TokenText, *, echo: bool) -> None:
        self._plan = plan
        self._created = created
        self._tokens = tokens
        self._echo = echo
        self._offsets: dict[int, int] = {}

    def whole(self, outcomes: Outcomes, usage: Usage, watermark: WatermarkBlock) -> CompletionResponse:
        """The response that is not streamed."""
        choices = [
            CompletionChoice(
                index=index,
                text=self._echoed(index) + outcome.text,
                logprobs=self._logprobs(index, outcome.logprobs),
                finish_reason=outcome.finish_reason,
                token_ids=outcome.token_ids if self._plan.return_token_ids else None,
                prompt_token_ids=self._prompt_token_ids(index),
            )
            for index, outcome in enumerate(outcomes.completions)
        ]
        return self._response(choices, usage, watermark)

    def chunk(self, piece: Piece, watermark: WatermarkBlock | None) -> CompletionResponse:
        """An event of a stream."""
        index, delta = piece.index, piece.delta
        first = index not in self._offsets
        choice = CompletionChoice(
            index=index,
            text=(self._echoed(index) if first else "") + delta.text,
            prompt_token_ids=self._prompt_token_ids(index) if first else None,
            logprobs=self._logprobs(index, delta.logprobs or ()),
            finish_reason=delta.finish_reason,
            token_ids=list(delta.token_ids) if self._plan.return_token_ids else None,
        )
        return self._response([choice], None, watermark)

    def last_chunk(self, usage: Usage, watermark: WatermarkBlock) -> CompletionResponse:
        """The event after the last piece, with the token counts."""
        return self._response([], usage, watermark)

    def _response(
        self, choices: list[CompletionChoice], usage: Usage | None, watermark: WatermarkBlock | None
    ) -> CompletionResponse:
        return CompletionResponse(
            id=self._plan.response_id,
            created=self._created,
            model=self._plan.model_id,
            choices=choices,
            usage=usage,
            watermark=watermark,
        )

    def _echoed(self, index: int) -> str:
        return self._plan.prompt_of(index).text if self._echo else ""

    def _prompt_token_ids(self, index: int) -> list[int] | None:
        return list(self._plan.prompt_of(index).token_ids) if self._plan.return_token_ids else None

    def _logprobs(self, index: int, entries: Sequence[TokenLogprob]) -> CompletionLogprobs | None:
        offset = self._offsets.setdefault(index, 0)
        if self._plan.requests[index].sampling.logprobs is None:
            return None
        texts = [self._tokens.text(entry.token_id) for entry in entries]
        self._offsets[index] = offset + sum(map(len, texts))
        return CompletionLogprobs(
            tokens=texts,
            token_logprobs=[finite(entry.logprob) for entry in entries],
            top_logprobs=[self._top(entry) for entry in entries],
            text_offset=text_offsets(texts, offset),
        )

    def _top(self, entry: TokenLogprob) -> dict[str, float]:
        # The emitted token comes last so that its own value stands where two tokens read the same.
        candidates = [*reversed(entry.top), (entry.token_id, entry.logprob)]
        return {self._tokens.text(token_id): finite(logprob) for token_id, logprob in candidates}
