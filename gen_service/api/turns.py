"""A conversation as chat templates read it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ttmark.gen_service.api.tool_formats import calls_text, result_text, system_text
from ttmark.shared.schemas.chat import ChatMessage
from ttmark.shared.schemas.tools import ToolCall


def turns(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """The messages, for a template that knows tools: arguments are values, results name their function."""
    names = {call.id: call.function.name for message in messages for call in message.tool_calls or ()}
    told = []
    for message in messages:
        turn: dict[str, Any] = {"role": _role(message), "content": message.text}
        if message.reasoning_content is not None:
            turn["reasoning_content"] = message.reasoning_content
        if message.tool_calls:
            turn["tool_calls"] = [_call(call) for call in message.tool_calls]
        if message.tool_call_id is not None:
            turn["tool_call_id"] = message.tool_call_id
            if message.tool_call_id in names:
                turn["name"] = names[message.tool_call_id]
        told.append(turn)
    return told


def turns_in_words(
    messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The messages with tools, calls and results as texts, for a template that knows none of them."""
    told: list[dict[str, Any]] = []
    for message in messages:
        role, content = _role(message), message.text
        if message.tool_calls:
            content += calls_text([_call(call) for call in message.tool_calls])
        if role == "tool":
            role, content = "user", result_text(content)
            if told and told[-1].get("results"):
                told[-1]["content"] += "\n" + content
                continue
        turn = {"role": role, "content": content, "results": message.role == "tool"}
        if message.reasoning_content is not None:
            turn["reasoning_content"] = message.reasoning_content
        told.append(turn)
    if tools and told and told[0]["role"] == "system":
        told[0]["content"] += "\n\n" + system_text(tools)
    elif tools:
        told.insert(0, {"role": "system", "content": system_text(tools)})
    return [{name: value for name, value in turn.items() if name != "results"} for turn in told]


def arguments_of(call: ToolCall) -> Any:
    """The arguments of a call as a value; a text that is no JSON stays one."""
    try:
        return json.loads(call.function.arguments)
    except ValueError:
        return call.function.arguments


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": arguments_of(call)}
    return {"id": call.id, "type": "function", "function": function}


def _role(message: ChatMessage) -> str:
    return "system" if message.role == "developer" else message.role
