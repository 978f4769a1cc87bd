"""The calls of one answer, as OpenAI's chat API writes them."""

import json
from collections.abc import Iterator
from typing import Any

from ttmark.gen_service.decoding.request import FinishReason
from ttmark.gen_service.features.structured.call_reader import CallReader
from ttmark.gen_service.features.structured.tools import ToolUse
from ttmark.shared.schemas.generation.chat import ChatFinishReason
from ttmark.shared.schemas.generation.tools import CallDelta, MadeCall, MadeFunction


class Calls:
    """Gathers them, whole and as the pieces that have not been sent."""

    def __init__(self, tools: ToolUse) -> None:
        self._tools = tools
        self._reader = CallReader(tools.form, tools.schemas)
        self.made: list[MadeCall] = []
        self.pending: list[CallDelta] = []

    def read(self, text: str, *, final: bool) -> str:
        words, pieces = self._reader.read(text, final=final)
        for piece in pieces:
            name, arguments = piece.function.name, piece.function.arguments
            if name is None:
                self.made[piece.index].function.arguments += arguments
            else:
                piece.id, piece.type = self._tools.new_id(name, piece.index), "function"
                self.made.append(MadeCall(id=piece.id, function=MadeFunction(name=name, arguments=arguments)))
        self.pending += pieces
        return words

    def take(self) -> list[CallDelta]:
        """The pieces since it was last asked, at most one for each call."""
        taken, self.pending = self.pending, []
        return taken

    def finish_reason(self, reason: FinishReason | None) -> ChatFinishReason | None:
        """Why the answer ended: for its calls, if they are whole."""
        return "tool_calls" if reason == "stop" and self._reader.whole else reason


def as_held(tools: ToolUse, text: str) -> str:
    """What a client holds of an answer and may ask about: its words and the texts among the arguments of its
    calls, a line each."""
    calls = Calls(tools)
    held = [calls.read(text, final=True)]
    for made in calls.made:
        try:
            held += _texts(json.loads(made.function.arguments))
        except ValueError:  # it was cut
            held.append(made.function.arguments)
    return "\n".join(text for text in held if text.strip())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
