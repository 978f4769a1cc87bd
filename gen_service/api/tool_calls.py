"""The calls of one answer, as OpenAI's chat API writes them."""

from ttmark.gen_service.api.tool_call_parser import CallReader
from ttmark.gen_service.api.tools import ToolUse
from ttmark.gen_service.engine import FinishReason
from ttmark.shared.schemas.chat import ChatFinishReason
from ttmark.shared.schemas.tools import CallDelta, FunctionDelta, MadeCall, MadeFunction


class Calls:
    """Gathers them, whole and as the pieces that have not been sent."""

    def __init__(self, tools: ToolUse) -> None:
        self._tools = tools
        self._reader = CallReader(tools.form)
        self.made: list[MadeCall] = []
        self.pending: list[CallDelta] = []

    def read(self, text: str, *, final: bool) -> str:
        """Takes more of the answer; the words in it."""
        said = self._reader.read(text, final=final)
        for piece in said.calls:
            function = FunctionDelta(name=piece.name, arguments=piece.arguments)
            if piece.name is None:
                self.made[piece.index].function.arguments += piece.arguments
                self.pending.append(CallDelta(index=piece.index, function=function))
                continue
            call = MadeCall(
                id=self._tools.new_id(), function=MadeFunction(name=piece.name, arguments=piece.arguments)
            )
            self.made.append(call)
            self.pending.append(CallDelta(index=piece.index, id=call.id, type="function", function=function))
        return said.content

    def take(self) -> list[CallDelta]:
        """The pieces since it was last asked, at most one for each call."""
        taken, self.pending = self.pending, []
        return taken

    def finish_reason(self, reason: FinishReason | None) -> ChatFinishReason | None:
        """Why the answer ended: for its calls, if they are whole."""
        return "tool_calls" if reason == "stop" and self._reader.whole else reason
