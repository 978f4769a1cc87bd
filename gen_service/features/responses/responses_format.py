"""Answers in the shape of `/v1/responses`: reasoning, message and calls, streamed as events with types."""

import time
from collections.abc import Iterator, Sequence
from typing import Literal

from ttmark.gen_service.api.account import Answer
from ttmark.gen_service.api.format import event
from ttmark.gen_service.api.plan.request_plan import Plan
from ttmark.gen_service.decoding.request import Delta, FinishReason
from ttmark.shared.http.service_errors import ServiceError
from ttmark.shared.schemas.generation import responses
from ttmark.shared.schemas.generation import responses as events
from ttmark.shared.schemas.generation.chat import TextFormat
from ttmark.shared.schemas.generation.responses_request import ResponsesRequest
from ttmark.shared.schemas.generation.tools import CallDelta

Item = responses.OutputReasoning | responses.OutputMessage | responses.OutputCall


class ResponsesFormat:
    def __init__(self, plan: Plan, body: ResponsesRequest) -> None:
        self._plan = plan
        self._created = int(time.time())
        self._body = body
        self._output: list[Item] = []
        self._is_open = False  # the last item of the output
        self._sent = 0

    def whole(self, answer: Answer) -> responses.ResponseObject:
        state = answer.completions[0]
        for _ in self._write(state.reasoning, state.text, state.calls, state.finish_reason):
            pass  # events are for streams
        return self._ended(answer)

    def opening(self) -> Iterator[bytes]:
        names: tuple[events.PROGRESS, ...] = ("response.created", "response.in_progress")
        for name in names:
            yield self._lifecycle(name, self._response("in_progress"))

    def delta(self, delta: Delta, _: Answer | None) -> Iterator[bytes]:
        yield from self._write(delta.reasoning, delta.text, delta.calls, delta.finish_reason)

    def closing(self, answer: Answer) -> Iterator[bytes]:
        response = self._ended(answer)
        yield self._lifecycle(
            "response.incomplete" if response.incomplete_details else "response.completed", response
        )

    def failed(self, error: ServiceError) -> Iterator[bytes]:
        """The error with its code, and the response, whose own error has no such codes."""
        failure = events.FailureEvent(
            code=error.code, message=error.message, param=error.param, sequence_number=self._sent
        )
        yield self._event(failure)
        response = self._response("failed")
        response.error = responses.ResponseFailure(message=error.message)
        yield self._lifecycle("response.failed", response)

    def _write(
        self, reasoning: str, words: str, calls: Sequence[CallDelta], reason: FinishReason | None
    ) -> Iterator[bytes]:
        """Takes more of the answer, and the `reason` with its end."""
        if reasoning:
            yield from self._reason(reasoning)
        if words or (reason and not calls and not self._output):
            yield from self._say(words)
        for call in calls:
            yield from self._call(call)
        if reason:
            yield from self._end("completed" if self._is_whole(reason) else "incomplete")

    def _reason(self, words: str) -> Iterator[bytes]:
        if not self._output:
            item = responses.OutputReasoning(id=self._id("rs"), content=[])
            yield from self._begin(item)
            item.content.append(responses.ReasoningText(text=""))
            yield self._part("response.content_part.added", item)
        reasoning = self._output[-1]
        if isinstance(reasoning, responses.OutputReasoning):
            reasoning.content[0].text += words
            yield self._event(events.ReasoningDeltaEvent(delta=words, **self._place()))

    def _say(self, words: str) -> Iterator[bytes]:
        if not self._output or isinstance(self._output[-1], responses.OutputReasoning):
            item = responses.OutputMessage(id=self._id("msg"), content=[])
            yield from self._begin(item)
            item.content.append(responses.OutputText(text=""))
            yield self._part("response.content_part.added", item)
        message = self._output[-1]
        if words and isinstance(message, responses.OutputMessage):
            message.content[0].text += words
            yield self._event(events.TextDeltaEvent(delta=words, **self._place()))

    def _call(self, piece: CallDelta) -> Iterator[bytes]:
        if piece.id is not None and piece.function.name is not None:
            item_id = f"{self._id('fc')}_{piece.index}"
            yield from self._begin(
                responses.OutputCall(id=item_id, call_id=piece.id, name=piece.function.name, arguments="")
            )
        call, arguments = self._output[-1], piece.function.arguments
        if arguments and isinstance(call, responses.OutputCall):
            call.arguments += arguments
            yield self._event(events.ArgumentsDeltaEvent(delta=arguments, **self._place()))

    def _begin(self, item: Item) -> Iterator[bytes]:
        yield from self._end("completed")
        self._output.append(item)
        self._is_open = True
        yield self._item("response.output_item.added", item)

    def _end(self, status: responses.ItemStatus) -> Iterator[bytes]:
        if not self._is_open:
            return
        self._is_open = False
        item = self._output[-1]
        item.status = status
        if isinstance(item, responses.OutputMessage):
            yield self._event(events.TextDoneEvent(text=item.content[0].text, **self._place()))
            yield self._part("response.content_part.done", item)
        elif isinstance(item, responses.OutputReasoning):
            yield self._event(events.ReasoningDoneEvent(text=item.content[0].text, **self._place()))
            yield self._part("response.content_part.done", item)
        else:
            done = events.ArgumentsDoneEvent(name=item.name, arguments=item.arguments, **self._place())
            yield self._event(done)
        yield self._item("response.output_item.done", item)

    def _is_whole(self, reason: FinishReason) -> bool:
        """Whether the answer ended of itself, and not inside a call."""
        called = any(isinstance(item, responses.OutputCall) for item in self._output)
        return reason == ("tool_calls" if called else "stop")

    def _id(self, kind: str) -> str:
        return self._plan.response_id.replace("resp", kind, 1)

    def _event(self, data: events.ResponseEvent) -> bytes:
        self._sent += 1
        return event(data, name=data.type)

    def _lifecycle(self, name: events.PROGRESS | events.OUTCOME, response: responses.ResponseObject) -> bytes:
        return self._event(events.LifecycleEvent(type=name, response=response, sequence_number=self._sent))

    def _item(
        self,
        name: Literal["response.output_item.added", "response.output_item.done"],
        item: Item,
    ) -> bytes:
        index = len(self._output) - 1
        return self._event(
            events.OutputItemEvent(type=name, item=item, output_index=index, sequence_number=self._sent)
        )

    def _part(
        self,
        name: Literal["response.content_part.added", "response.content_part.done"],
        item: responses.OutputMessage | responses.OutputReasoning,
    ) -> bytes:
        return self._event(events.ContentPartEvent(type=name, part=item.content[0], **self._place()))

    def _place(self) -> events.ItemPlace:
        return {
            "item_id": self._output[-1].id,
            "output_index": len(self._output) - 1,
            "sequence_number": self._sent,
        }

    def _ended(self, answer: Answer) -> responses.ResponseObject:
        state, usage = answer.completions[0], answer.usage
        cut = state.finish_reason == "length"
        response = self._response("incomplete" if cut else "completed")
        response.incomplete_details = responses.IncompleteDetails() if cut else None
        response.output = list(self._output)
        if self._body.return_token_ids:
            response.output[0].token_ids = state.token_ids
            response.output[0].prompt_token_ids = list(self._plan.requests[0].prompt_ids)
        response.usage = responses.ResponseUsage(
            input_tokens=usage.prompt_tokens,
            input_tokens_details=responses.InputTokensDetails(
                cached_tokens=usage.prompt_tokens_details.cached_tokens
            ),
            output_tokens=usage.completion_tokens,
            output_tokens_details=responses.OutputTokensDetails(
                reasoning_tokens=usage.completion_tokens_details.reasoning_tokens
            ),
            total_tokens=usage.total_tokens,
        )
        response.watermark = answer.watermark
        return response

    def _response(self, status: responses.ResponseStatus) -> responses.ResponseObject:
        body, sampling = self._body, self._plan.requests[0].sampling
        return responses.ResponseObject(
            id=self._plan.response_id,
            created_at=self._created,
            completed_at=int(time.time()) if status == "completed" else None,
            status=status,
            instructions=body.instructions,
            max_output_tokens=body.max_output_tokens,
            metadata=body.metadata or {},
            model=self._plan.model_id,
            output=[],
            parallel_tool_calls=body.parallel_tool_calls is not False,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            presence_penalty=sampling.presence_penalty,
            frequency_penalty=sampling.frequency_penalty,
            text=responses.TextConfig(format=(body.text and body.text.format) or TextFormat(type="text")),
            tool_choice=body.tool_choice or "auto",
            tools=body.tools or [],
        )
