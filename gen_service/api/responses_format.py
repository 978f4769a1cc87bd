"""Answers in the shape of `/v1/responses`: one message, streamed as events with types."""

import time
from collections.abc import Iterator
from typing import Literal

from ttmark.gen_service.api.event_stream import event
from ttmark.gen_service.api.merge import IndexedDelta
from ttmark.gen_service.api.outcome import Ending, Outcome
from ttmark.gen_service.api.plan import Plan
from ttmark.shared.http.service_errors import ServiceError
from ttmark.shared.schemas import response_events as events
from ttmark.shared.schemas import responses
from ttmark.shared.schemas.chat import TextFormat
from ttmark.shared.schemas.responses_request import ResponsesRequest


class ResponsesFormat:
    """Writes one response."""

    def __init__(self, plan: Plan, body: ResponsesRequest) -> None:
        self._plan = plan
        self._created = int(time.time())
        self._body = body
        self._item_id = plan.response_id.replace("resp_", "msg_", 1)
        self._sent = 0

    def whole(self, ending: Ending) -> responses.ResponseObject:
        """The response that is not streamed."""
        outcome, usage = ending.completions[0], ending.usage
        cut = _is_cut_short(outcome)
        response = self._response("incomplete" if cut else "completed")
        response.incomplete_details = responses.IncompleteDetails() if cut else None
        response.output = [self._message(outcome)]
        response.usage = responses.ResponseUsage(
            input_tokens=usage.prompt_tokens,
            input_tokens_details=responses.InputTokensDetails(
                cached_tokens=usage.prompt_tokens_details.cached_tokens
            ),
            output_tokens=usage.completion_tokens,
            total_tokens=usage.total_tokens,
        )
        response.watermark = ending.watermark
        return response

    def opening(self) -> Iterator[bytes]:
        """The response, its message and the message's text, all of them empty."""
        names: tuple[events.PROGRESS, ...] = ("response.created", "response.in_progress")
        for name in names:
            yield self._lifecycle(name, self._response("in_progress"))
        item = responses.OutputMessage(id=self._item_id, status="in_progress", content=[])
        yield self._event(
            events.OutputItemEvent(type="response.output_item.added", item=item, sequence_number=self._sent)
        )
        yield self._part("response.content_part.added", "")

    def delta(self, indexed: IndexedDelta, _: Ending | None) -> Iterator[bytes]:
        """More text, if there is any; the watermark waits for the last event."""
        if text := indexed.delta.text:
            yield self._event(
                events.TextDeltaEvent(item_id=self._item_id, delta=text, sequence_number=self._sent)
            )

    def closing(self, ending: Ending) -> Iterator[bytes]:
        """Text, message and response, all of them whole."""
        outcome = ending.completions[0]
        done = events.TextDoneEvent(item_id=self._item_id, text=outcome.text, sequence_number=self._sent)
        yield self._event(done)
        yield self._part("response.content_part.done", outcome.text)
        item = events.OutputItemEvent(
            type="response.output_item.done", item=self._message(outcome), sequence_number=self._sent
        )
        yield self._event(item)
        name: events.OUTCOME = "response.incomplete" if _is_cut_short(outcome) else "response.completed"
        yield self._lifecycle(name, self.whole(ending))

    def failed(self, error: ServiceError) -> Iterator[bytes]:
        """The error with its code, and the response, whose own error has no such codes."""
        failure = events.FailureEvent(
            code=error.code, message=error.message, param=error.param, sequence_number=self._sent
        )
        yield self._event(failure)
        response = self._response("failed")
        response.error = responses.ResponseFailure(message=error.message)
        yield self._lifecycle("response.failed", response)

    def _event(self, data: events.ResponseEvent) -> bytes:
        self._sent += 1
        return event(data, name=data.type)

    def _lifecycle(self, name: events.PROGRESS | events.OUTCOME, response: responses.ResponseObject) -> bytes:
        return self._event(events.LifecycleEvent(type=name, response=response, sequence_number=self._sent))

    def _part(
        self, name: Literal["response.content_part.added", "response.content_part.done"], text: str
    ) -> bytes:
        part = responses.OutputText(text=text)
        return self._event(
            events.ContentPartEvent(type=name, item_id=self._item_id, part=part, sequence_number=self._sent)
        )

    def _message(self, outcome: Outcome) -> responses.OutputMessage:
        asked = self._plan.return_token_ids
        return responses.OutputMessage(
            id=self._item_id,
            status="incomplete" if _is_cut_short(outcome) else "completed",
            content=[responses.OutputText(text=outcome.text)],
            token_ids=outcome.token_ids if asked else None,
            prompt_token_ids=list(self._plan.prompt_of(0).token_ids) if asked else None,
        )

    def _response(self, status: responses.ResponseStatus) -> responses.ResponseObject:
        body, sampling = self._body, self._plan.requests[0].sampling
        return responses.ResponseObject(
            id=self._plan.response_id,
            created_at=self._created,
            status=status,
            instructions=body.instructions,
            max_output_tokens=body.max_output_tokens,
            metadata=body.metadata or {},
            model=self._plan.model_id,
            output=[],
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            text=responses.TextConfig(format=(body.text and body.text.format) or TextFormat(type="text")),
        )


def _is_cut_short(outcome: Outcome) -> bool:
    return outcome.finish_reason == "length"
