"""What tools, reasoning and forms of answers do to a request."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import structlog

from ttmark.gen_service.api.plan.prompts import Prompt
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.gen_service.api.plan.stages import CompletionState, Hook, RequestStage
from ttmark.gen_service.decoding.request import Constraint, Delta
from ttmark.gen_service.features.structured.answer_marks import AnsweringModel
from ttmark.gen_service.features.structured.call_reader import CallReader
from ttmark.gen_service.features.structured.formats.marks import without_marks
from ttmark.gen_service.features.structured.grammars.json_grammar import ANY_OBJECT
from ttmark.gen_service.features.structured.reasoning import Reasoning, ReasoningReader, ReasoningRule
from ttmark.gen_service.features.structured.structured_outputs import Asked, asked_form, response_grammar
from ttmark.gen_service.features.structured.tools import tool_use
from ttmark.shared.schemas.fields import RequestPart
from ttmark.shared.schemas.generation.chat import ChatRequest
from ttmark.shared.schemas.generation.responses_request import ResponsesRequest
from ttmark.shared.schemas.generation.sampling import ChoiceFields


class Forms(Hook):
    """Tools, reasoning and forms, of all models."""

    fields = (
        "guided_choice",
        "guided_grammar",
        "guided_json",
        "guided_regex",
        "response_format",
        "structured_outputs",
        "tool_choice",
        "tools",
    )

    def __init__(self, rule: ReasoningRule = "auto") -> None:
        self._rule = rule
        self._served: dict[str, AnsweringModel] = {}
        self.models = self._reasoning = set[str]()

    def serve(self, name: str, model: ServedModel) -> None:
        self._served[name] = answering = AnsweringModel(model, self._rule)
        if answering.answers.thoughts:
            self._reasoning.add(name)
        if answering.chats and answering.answers.tools is None:
            log = structlog.get_logger("ttmark.models")
            log.warning("no_tools", model=name, why=answering.answers.no_tools)
        answering.grammars.submit(ANY_OBJECT)  # its first grammar would hold up whoever is served then

    def stage(self, body: RequestPart, model: str) -> RequestStage | None:
        return FormedAnswer(self._served[model], body)


class FormedAnswer(RequestStage):
    """An answer that may call tools, reason, or is held to a form.

    Raises:
        ServiceError: what the request asks for cannot be.
    """

    def __init__(self, model: AnsweringModel, body: RequestPart) -> None:
        self._model = model
        self._asked: Asked = ("response_format", None)
        self._ignores_end = bool(getattr(body, "ignore_eos", False))
        choice, several = getattr(body, "tool_choice", None), getattr(body, "parallel_tool_calls", None)
        if isinstance(body, ResponsesRequest):
            self._tools = tool_use(body.chat_tools, body.chat_tool_choice, several, model)
            self._asked = ("text.format", body.response_format)
        else:
            self._tools = tool_use(getattr(body, "tools", None), choice, several, model)
        if isinstance(body, ChoiceFields):
            self._asked = asked_form(body, self._tools)
        self._may_reason = isinstance(body, ChatRequest | ResponsesRequest)
        self.shown = self._tools.shown if self._tools else ()
        self._thoughts: dict[int, ReasoningReader] = {}
        self._calls: dict[int, CallReader] = {}
        self._reasoning: Reasoning | None = None

    async def constrain(self, prompts: Sequence[Prompt]) -> Constraint | None:
        if self._may_reason:
            self._reasoning = self._model.answers.reasoning(prompts[0].text)
        if self._tools or self._reasoning:
            self.marks = self._model.answers.special.shown
        field, form = self._asked
        return await response_grammar(
            form, self._tools, self._model, self._reasoning, ignore_eos=self._ignores_end, field=field
        )

    def read(self, delta: Delta) -> Delta:
        final, text, reasoning = delta.finish_reason is not None, delta.text, ""
        if self._reasoning:
            reader = self._thoughts.setdefault(delta.index, ReasoningReader(self._reasoning))
            reasoning, text = reader.read(text, final=final)
        if self._tools is None:
            text = without_marks(text) if self._reasoning else text
            return replace(delta, text=text, reasoning=reasoning)
        calls = self._calls.setdefault(delta.index, CallReader(self._tools.form, self._tools.schemas))
        words, pieces = calls.read(text, final=final)
        for piece in pieces:
            if piece.function.name is not None:
                piece.id, piece.type = self._tools.new_id(piece.function.name, piece.index), "function"
        reason = "tool_calls" if delta.finish_reason == "stop" and calls.whole else delta.finish_reason
        return replace(delta, text=words, reasoning=reasoning, calls=tuple(pieces), finish_reason=reason)

    def held(self, index: int, state: CompletionState, text: str) -> str:
        if self._reasoning:
            tokenizer = self._model.generator.tokenizer
            state.reasoning_tokens = self._thoughts[index].count(state.token_ids, tokenizer)
        return as_held(state) if self._tools else text


def as_held(state: CompletionState) -> str:
    """What a client holds of an answer and may ask about: its words and the texts among the arguments of its
    calls, a line each."""
    held = [state.text]
    for call in state.calls:
        try:
            held += _texts(json.loads(call.function.arguments))
        except ValueError:  # it was cut
            held.append(call.function.arguments)
    return "\n".join(text for text in held if text.strip())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
