"""Conversations with tools, told to chat templates in their own terms or in words of ours."""

from collections.abc import Mapping, Sequence
from typing import Any

from ttmark.gen_service.api.conversation.chat_template import (
    ChatTemplate,
    Tell,
    Tools,
    Turns,
    arguments_of,
    turn_of,
)
from ttmark.gen_service.features.structured.formats.tool_formats import (
    OURS,
    ToolFormat,
    as_text,
    in_words,
    show_tools,
    system_text,
)
from ttmark.gen_service.features.structured.learned_format import learned_of
from ttmark.shared.schemas.generation.chat import ChatMessage
from ttmark.shared.schemas.generation.tools import ToolCall


def teller(template: ChatTemplate) -> Tell:
    """What tells a template conversations with tools, as it writes calls itself."""
    learned = learned_of(template)
    form = learned.tools or ToolFormat("", "", "")

    def tell(messages: Sequence[ChatMessage], tools: Tools, parts: bool) -> tuple[Turns, Tools]:
        told = turns(messages, form, parts=parts and form.writes)
        if not form.writes:
            told = in_words(told)
        if tools and not form.shows:
            show_tools(told, system_text(form, tools), system=learned.takes_system)
        return told, list(tools) if form.shows else ()

    return tell


def turns(
    messages: Sequence[ChatMessage], form: ToolFormat = OURS, *, parts: bool = False
) -> list[dict[str, Any]]:
    """The messages, for a template that knows tools: arguments are values, results name their function.

    Args:
        parts: leaves contents in parts where the caller wrote parts, but for results of tools.
    """
    names: dict[str, str] = {}
    told = []
    for message in messages:
        turn = turn_of(message, parts=parts and message.role != "tool")
        if message.tool_calls:
            turn["content"] = turn["content"] or form.content
            turn["tool_calls"] = [_call(call) for call in message.tool_calls]
            for call in turn["tool_calls"] if form.text_arguments else ():
                call["function"]["arguments"] = as_text(call["function"]["arguments"])
            names |= {call.id: call.function.name for call in message.tool_calls}
        if message.tool_call_id is not None:
            turn["tool_call_id"] = message.tool_call_id
            if message.tool_call_id in names:
                turn["name"] = names[message.tool_call_id]
        told.append(turn)
    return told


def _call(call: ToolCall) -> Mapping[str, Any]:
    function = {"name": call.function.name, "arguments": arguments_of(call)}
    return {"id": call.id, "type": "function", "function": function}
