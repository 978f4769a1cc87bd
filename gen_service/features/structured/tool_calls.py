"""The calls of one answer, as OpenAI's chat API writes them."""

from ttmark.gen_service.decoding.request import FinishReason
from ttmark.gen_service.features.structured.call_reader import CallReader
from ttmark.gen_service.features.structured.tools import ToolUse
from ttmark.shared.schemas.generation.tools import CallDelta


class Calls:
    """Tells them from the words, and gives them ids."""

    def __init__(self, tools: ToolUse) -> None:
        self._tools = tools
        self._reader = CallReader(tools.form, tools.schemas)

    def read(self, text: str, *, final: bool) -> tuple[str, list[CallDelta]]:
        """The words and the pieces of calls that become certain with more text, at most one for each call."""
        words, pieces = self._reader.read(text, final=final)
        for piece in pieces:
            if piece.function.name is not None:
                piece.id, piece.type = self._tools.new_id(piece.function.name, piece.index), "function"
        return words, pieces

    def finish_reason(self, reason: FinishReason | None) -> FinishReason | None:
        """Why the answer ended: for its calls, if they are whole."""
        return "tool_calls" if reason == "stop" and self._reader.whole else reason
