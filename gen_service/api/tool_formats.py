"""How models write that they call a tool: a table of formats, chosen by the chat template."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_CALLS = 16
"""Of one answer."""

_ASKED = (
    "You can call functions. Each has a name, a description and a JSON schema of its arguments:\n"
    "<tools>{tools}</tools>\n"
    "To call functions, answer with nothing but a list of calls, in this form:\n"
    '<tool_call>[{{"name": "the_function", "arguments": {{"an_argument": "its value"}}}}]</tool_call>\n'
    "What they return is told to you between <tool_response> and </tool_response>. If no function helps, "
    "answer in words."
)


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """A way to write calls: tag, opening, then for each call its head, name, middle, arguments and an end.

    Attributes:
        tag: comes before all calls; a control token in some models.
        opening: stands between the tag and the first call.
        before: stands before each call.
        key: how the arguments are called.
        between: what ends a call that another follows; empty where there is one call at most.
        close: what ends the last.
        sign: the character with which an answer of calls begins, and no answer of words: calls stand alone.
            Empty where calls may come after words.
        taught: the template shows tools and calls to the model; else a system text of ours does.
        id_length: characters of a call's id, where the template wants so many.
    """

    name: str
    close: str
    tag: str = ""
    opening: str = ""
    before: str = ""
    key: str = "arguments"
    between: str = ""
    sign: str = ""
    taught: bool = True
    id_length: int | None = None

    @property
    def head(self) -> str:
        """The beginning of each call, up to the name."""
        return f'{self.before}{{"name": "'

    @property
    def middle(self) -> str:
        """What stands between name and arguments."""
        return f'", "{self.key}": '


HERMES = ToolFormat(
    "hermes",
    tag="<tool_call>",
    before="\n",
    between="}\n</tool_call>\n<tool_call>",
    close="}\n</tool_call>",
)
LLAMA3 = ToolFormat("llama3", key="parameters", close="}", sign="{")
MISTRAL = ToolFormat(
    "mistral", tag="[TOOL_CALLS]", opening="[", between="}, ", close="}]", sign="[", id_length=9
)
SMOLLM = ToolFormat(
    "smollm", tag="<tool_call>", opening="[", between="}, ", close="}]</tool_call>", taught=False
)

_SIGNS = (
    (MISTRAL, ("[TOOL_CALLS]", "[AVAILABLE_TOOLS]")),
    (HERMES, ("<tool_call>", "</tool_call>", "tools")),
    (LLAMA3, ('"parameters": ', "ipython", "tools")),
)


def format_of(template: str) -> ToolFormat:
    """The format that a chat template teaches; SmolLM's, in a system text, where it teaches none we know."""
    for form, signs in _SIGNS:
        if all(sign in template for sign in signs):
            return form
    return SMOLLM


def system_text(tools: Sequence[Mapping[str, Any]]) -> str:
    """Shows tools to a model whose template has no place for them."""
    shown = [tool["function"] for tool in tools]
    return _ASKED.format(tools=json.dumps(shown, ensure_ascii=False))


def calls_text(calls: Sequence[Mapping[str, Any]]) -> str:
    """Calls of an earlier answer, for a template that has no place for them."""
    form, written = SMOLLM, []
    for function in (call["function"] for call in calls):
        arguments = json.dumps(function["arguments"], ensure_ascii=False)
        written.append(form.head + function["name"] + form.middle + arguments)
    return form.tag + form.opening + form.between.join(written) + form.close
