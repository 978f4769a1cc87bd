"""How a model writes that it calls a tool: marks, and what stands between them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

MOST_CALLS = 16
"""Of one answer."""
ID, INDEX = "\x00", "\x01"
"""Stand in marks for a call's id and for its number."""
NAME, ARGUMENTS = "\x02", "\x03"
"""Stand in a call for the name of the function and for the arguments."""

_ASKED = (
    "You can call functions. Each has a name, a description and a JSON schema of its arguments:\n"
    "<tools>{tools}</tools>\n"
    "To call functions, answer with nothing but calls, in this form:\n"
    "{example}\n"
    "What they return is told to you{results}. If no function helps, answer in words."
)
_OUR_EXAMPLE = (
    '<tool_call>[{"name": "the_function", "arguments": {"an_argument": "its value"}}]</tool_call>',
    " between <tool_response> and </tool_response>",
)


@dataclass(frozen=True, slots=True)
class Quotes:
    """What stands around a tagged value: between its key and it, and behind it."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Tagged:
    """Arguments that are written one by one, each with marks of its own.

    Attributes:
        key: stands before each key.
        between: stands between the end of a value and `key`.
        quotes: by the JSON type of a value.
        plain: whether texts stand as they are, up to the mark behind them; else they are quoted.
        quote: with what, where they are not plain.
        sorts: whether keys stand in their order.
        python_lists: whether texts in lists are quoted as Python does.
        inner: the mark around texts inside of other values, where those are no JSON.
    """

    key: str
    between: str
    quotes: Mapping[str, Quotes]
    plain: bool
    quote: str = '"'
    sorts: bool = False
    python_lists: bool = False
    inner: str = ""


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """A way to write calls: the lead, then calls with something between them, and a close.

    Attributes:
        lead: comes before the first call.
        call: the name, the arguments and what stands between them, in their order.
        between: what ends a call that another follows; None where there is one call at most.
        close: what ends the last.
        coda: may follow the close, where there are several calls.
        gap: what stands between words and the lead.
        head: what stands before the lead where there are no words.
        tagged: None: the arguments are a JSON object.
        shows: whether the template shows the tools; else a system text of ours does.
        writes: whether the template writes calls and results; else we tell them in words.
        id_style: how ids of calls are made, by the place in `ID_STYLES`.
        content: of a turn with calls and no words.
        text_arguments: whether the template wants the arguments of calls as a text.
    """

    lead: str
    call: str
    close: str
    between: str | None = None
    coda: str = ""
    gap: str = ""
    head: str = ""
    tagged: Tagged | None = None
    shows: bool = True
    writes: bool = True
    id_style: int = 0
    content: str | None = ""
    text_arguments: bool = False
    example: tuple[str, str] = field(default=_OUR_EXAMPLE)

    @property
    def alone(self) -> bool:
        """Whether calls have no mark of their own: then no words come before them, and none begin so."""
        return _MARK.match(self.lead) is None

    @property
    def trigger(self) -> str:
        """The beginning of the lead that no words have: from there on it is a call."""
        found = _MARK.match(self.lead)
        fixed = re.split(f"[{ID}{INDEX}]", self.lead)[0]
        return found[0] if found else fixed[:1] if fixed[:1] in "{[" else fixed

    @property
    def marks(self) -> list[str]:
        found: list[str] = []

        def note(mark: str) -> str:
            found.append(mark)
            return mark

        self.changed(note)
        return found

    def changed(self, change: Callable[[str], str]) -> "ToolFormat":
        tagged = self.tagged
        if tagged is not None:
            quotes = {
                kind: Quotes(change(each.before), change(each.after)) for kind, each in tagged.quotes.items()
            }
            tagged = replace(
                tagged,
                key=change(tagged.key),
                between=change(tagged.between),
                quotes=quotes,
                inner=change(tagged.inner),
            )
        return replace(
            self,
            lead=change(self.lead),
            call=change(self.call),
            close=change(self.close),
            between=None if self.between is None else change(self.between),
            coda=change(self.coda),
            gap=change(self.gap),
            head=change(self.head),
            tagged=tagged,
        )


# A mark in brackets, an element with an attribute, a word before a fence, a special token's stand-in, an
# element with the name in it, or what begins with a sign that neither words nor JSON begin with.
_MARK = re.compile(
    r"<[^<>\s]+>|<[\w:-]+( [\w-]+)?=|\[[A-Z_]+\]|\w+:\s```\w+|[\udc80-\udcff]"
    r"|<[\w:-]+ $|[^\w\s\x00-\x7f][^{\[\n\x00-\x03]+|[~@^|\\][^{\[\n\x00-\x03]+"
)

OURS = ToolFormat(
    lead='<tool_call>[{"name": "',
    call=f'{NAME}", "arguments": {ARGUMENTS}',
    between='}, {"name": "',
    close="}]</tool_call>",
    shows=False,
    writes=False,
)
"""In words of ours, for templates that know no tools: SmolLM's."""

ID_STYLES = ("call_{drawn}", "{drawn:.9}", "functions.{name}:{number}")
"""Ids of calls, by the function's name, the number of the call in the answer and 24 random letters."""


def system_text(form: ToolFormat, tools: Sequence[Mapping[str, Any]]) -> str:
    """Shows tools to a model whose template has no place for them."""
    shown = [tool["function"] for tool in tools]
    example, results = form.example
    return _ASKED.format(tools=json.dumps(shown, ensure_ascii=False), example=example, results=results)


def calls_text(calls: Sequence[Mapping[str, Any]]) -> str:
    """Calls of an earlier answer, for a template that has no place for them."""
    form, written = OURS, []
    for function in (call["function"] for call in calls):
        text = json.dumps(function["arguments"], ensure_ascii=False)
        written.append(form.call.replace(NAME, function["name"]).replace(ARGUMENTS, text))
    return form.lead + (form.between or "").join(written) + form.close


def as_text(arguments: Any) -> str:
    """Arguments as a template wants them that takes no values."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def in_words(told: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Turns with calls and results as texts, for a template that knows neither."""
    turns: list[dict[str, Any]] = []
    behind_a_result = False
    for turn in told:
        kept = {name: value for name, value in turn.items() if name not in _OF_TOOLS}
        if calls := turn.get("tool_calls"):
            kept["content"] += calls_text(calls)
        if kept["role"] == "tool":
            result = f"<tool_response>{kept['content']}</tool_response>"
            kept |= {"role": "user", "content": result}
            if behind_a_result:
                turns[-1]["content"] += "\n" + result
                continue
        behind_a_result = turn["role"] == "tool"
        turns.append(kept)
    return turns


_OF_TOOLS = frozenset({"tool_calls", "tool_call_id", "name"})


def show_tools(told: list[dict[str, Any]], text: str, *, system: bool) -> None:
    """Puts a text of ours in front: into the system's turn, or the first user's where there can be none."""
    first = told[0] if told else {}
    if system and first.get("role") != "system":
        told.insert(0, {"role": "system", "content": text})
    elif system:
        first["content"] += "\n\n" + text
    else:
        turn = next((turn for turn in told if turn["role"] == "user"), first)
        turn["content"] = f"{text}\n\n{turn['content']}"
