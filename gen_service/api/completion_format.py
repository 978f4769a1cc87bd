"""Answers in the shape of `/v1/completions`."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ttmark.gen_service.api.format import ChoicesFormat
from ttmark.gen_service.api.plan import Plan
from ttmark.gen_service.api.token_text import finite, text_offsets
from ttmark.gen_service.engine import TokenLogprob
from ttmark.shared.schemas.completions import (
    CompletionChoice,
    CompletionLogprobs,
    CompletionRequest,
    CompletionResponse,
)


class CompletionFormat(ChoicesFormat):
    """Writes one response; `echo` puts the prompt in front of each completion."""

    whole_schema = CompletionResponse
    chunk_schema = CompletionResponse

    def __init__(self, plan: Plan, body: CompletionRequest) -> None:
        super().__init__(plan)
        self._echo = bool(body.echo)
        self._offsets = Counter(dict.fromkeys(range(len(plan.requests)), plan.text_start))

    def _choice(self, text: str, common: dict[str, Any], *, first: bool) -> CompletionChoice:
        echoed = self._plan.prompt_of(common["index"]).text if first and self._echo else ""
        return CompletionChoice(text=echoed + text, **common)

    def _logprobs(self, index: int, entries: Sequence[TokenLogprob]) -> CompletionLogprobs:
        texts = [self._tokens.text(entry.token_id) for entry in entries]
        offset = self._offsets[index]
        self._offsets[index] += sum(map(len, texts))
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
