"""The calls of one answer: read from its text piece by piece, and as OpenAI's chat API writes them."""

import re

from ttmark.gen_service.api.tool_formats import ToolFormat
from ttmark.gen_service.api.tools import ToolUse
from ttmark.gen_service.decoding.sequence import overlap
from ttmark.gen_service.engine import FinishReason
from ttmark.shared.schemas.chat import ChatFinishReason
from ttmark.shared.schemas.tools import CallDelta, FunctionDelta, MadeCall, MadeFunction


class CallReader:
    """Splits one answer into words and calls. Pieces add up to the same however the text is cut.

    The grammar sees to it that a call that begins is written in its format, so nothing else is looked for.
    """

    def __init__(self, form: ToolFormat) -> None:
        self._form = form
        self._next_call = re.compile(re.escape(form.head) + '([^"]+)' + re.escape(form.middle))
        self._held = ""
        self._calling = False
        self._in_arguments = False
        self._arguments = _JsonValue()
        self._begins = True
        self._begun = 0

    @property
    def whole(self) -> bool:
        """Whether there are calls, and the arguments of the last are complete."""
        return bool(self._begun) and not self._in_arguments

    def read(self, text: str, *, final: bool = False) -> tuple[str, list[CallDelta]]:
        """Words, and pieces of calls, at most one for each, that become certain with more text.

        Args:
            final: there is no more.
        """
        self._held += text
        words = "" if self._calling else self._read_words(final)
        calls: list[CallDelta] = []
        while self._calling and self._held:
            if self._in_arguments:
                self._read_arguments(calls)
            elif (match := self._next_call.search(self._held)) is not None:
                calls.append(CallDelta(index=self._begun, function=FunctionDelta(name=match[1])))
                self._held, self._begun, self._in_arguments = self._held[match.end() :], self._begun + 1, True
            else:
                break
        return words, calls

    def _read_words(self, final: bool) -> str:
        """Passes words on; holds back what may become the first sign of a call."""
        certain = self._words_alone() if self._form.sign else self._words_before_tag()
        if final and not self._calling:
            certain = len(self._held)
        words, self._held = self._held[:certain], self._held[certain:]
        self._begins = self._begins and not words
        return words

    def _words_alone(self) -> int:
        """Characters of words, where the first that is no blank tells words from calls."""
        seen = self._held.lstrip()
        self._calling = self._begins and seen.startswith(self._form.sign)
        return len(self._held) if (seen or not self._begins) and not self._calling else 0

    def _words_before_tag(self) -> int:
        """Characters of words, where a tag ends them."""
        at = self._held.find(self._form.tag)
        self._calling = at >= 0
        return at if self._calling else len(self._held) - overlap(self._held, self._form.tag)

    def _read_arguments(self, calls: list[CallDelta]) -> None:
        size, self._in_arguments = self._arguments.take(self._held)
        if not calls or calls[-1].index != self._begun - 1:
            calls.append(CallDelta(index=self._begun - 1, function=FunctionDelta()))
        calls[-1].function.arguments += self._held[:size]
        self._held = self._held[size:]
        if not self._in_arguments:
            self._arguments = _JsonValue()


class _JsonValue:
    """Finds the end of an object as it is written."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = False
        self._escaped = False

    def take(self, text: str) -> tuple[int, bool]:
        """Characters of `text` that belong to it, and whether more will."""
        for at, sign in enumerate(text):
            if self._escaped:
                self._escaped = False
            elif self._quoted:
                self._escaped = sign == "\\"
                self._quoted = sign != '"'
            elif sign == '"':
                self._quoted = True
            elif sign in "{[":
                self._depth += 1
            elif sign in "}]":
                self._depth -= 1
                if not self._depth:
                    return at + 1, False
        return len(text), True


class Calls:
    """Gathers them, whole and as the pieces that have not been sent."""

    def __init__(self, tools: ToolUse) -> None:
        self._tools = tools
        self._reader = CallReader(tools.form)
        self.made: list[MadeCall] = []
        self.pending: list[CallDelta] = []

    def read(self, text: str, *, final: bool) -> str:
        """Takes more of the answer; the words in it."""
        words, pieces = self._reader.read(text, final=final)
        for piece in pieces:
            name, arguments = piece.function.name, piece.function.arguments
            if name is None:
                self.made[piece.index].function.arguments += arguments
            else:
                piece.id, piece.type = self._tools.new_id(), "function"
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
