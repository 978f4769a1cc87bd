"""The tools of one request: which may be called, and the grammar of an answer that may or must call them."""

import re
import secrets
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ttmark.gen_service.features.structured.answer_marks import AnsweringModel
from ttmark.gen_service.features.structured.formats.marks import NO_MARKS, Marks, pattern_of, without_marks
from ttmark.gen_service.features.structured.formats.tool_formats import (
    ARGUMENTS,
    ID,
    ID_STYLES,
    INDEX,
    MOST_CALLS,
    NAME,
    ToolFormat,
)
from ttmark.gen_service.features.structured.grammars.grammar import GrammarSource
from ttmark.gen_service.features.structured.grammars.json_grammar import (
    SchemaRefused,
    check_schemas,
    check_size,
    guided,
)
from ttmark.gen_service.features.structured.grammars.tagged_grammar import TaggedGrammar
from ttmark.gen_service.features.structured.reasoning import Reasoning
from ttmark.shared.http.service_errors import BadRequest, UnsupportedFeature
from ttmark.shared.schemas.generation.tools import Function, NamedTool, Tool, ToolChoice

_ANY_BLANK = "\x04"
NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


def answer_source(answer: Mapping[str, Any], reasoning: Reasoning | None) -> GrammarSource:
    """JSON that is valid against the schema `answer`, after `reasoning` if there is any.

    Raises:
        SchemaRefused: the schema is too large.
    """
    if reasoning is None:
        check_size([answer])
        return GrammarSource.of_schema(answer)
    check_schemas([answer])
    return _source(["said: answer", *_answer(answer, reasoning)], reasoning, free=False)


def _answer(answer: Mapping[str, Any], reasoning: Reasoning | None) -> list[str]:
    """JSON in place of words, with their marks."""
    start, stop = reasoning.around_words if reasoning else ("", "")
    return [f"answer: {start} json {stop}", f"json: %json {guided(answer)}"]


def _source(rules: Sequence[str], reasoning: Reasoning | None, *, free: bool) -> GrammarSource:
    """The grammar in which `rules` say what is `said`, after reasoning."""
    start = reasoning.rules("said") if reasoning else ["start: said"]
    text = "\n".join(["%llguidance {}", *start, *rules, ""])
    return GrammarSource("lark", text, free=free or (reasoning is not None and reasoning.opened))


_ID_SIGNS = string.ascii_letters + string.digits
_ID_LENGTH = 24
# Blanks of the model's JSON: as the template has them, as another has them, or none.
_BLANK = r"( |\n {0,16})?"
_IN_JSON = re.compile(
    r"""(?<=[{,:\[])\s*(?=["{\[]|$)|(?<=["}\]])\s*(?=[}\],:])|^\s*(?=[}\],])|(?<=[{,:\[])\s+|\s+(?=[}\]{\[])"""
)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What the model may call.

    Attributes:
        tools: all of the request's, which the model is shown.
        functions: those that it may call.
        must: whether it has to.
        several: whether it may call more than one.
    """

    form: ToolFormat
    tools: Sequence[Tool]
    functions: Sequence[Function]
    must: bool
    several: bool
    marks: Marks = NO_MARKS

    @property
    def shown(self) -> list[dict[str, Any]]:
        return [tool.model_dump(exclude_none=True, exclude={"function": {"strict"}}) for tool in self.tools]

    def source(self, answer: Mapping[str, Any] | None, reasoning: Reasoning | None) -> GrammarSource:
        """The grammar of an answer: calls, and unless it `must` call, words in front of them or instead.

        Args:
            answer: the schema of an answer that is no call, in place of words.
            reasoning: that may come first, in which a tag opens nothing.

        Raises:
            SchemaRefused: the schemas are too large, all together.
            UnsupportedFeature: the model's calls could not be told from such an answer.
        """
        form, answer = self.form, None if self.must else answer
        if answer is not None and form.alone:
            raise UnsupportedFeature(
                "tools: not available together with a response format for this model, unless a call is "
                "required; its calls could not be told from other answers.",
                param="tools",
            )
        # OpenAI's clients leave the type out at times; arguments are an object whatever they say.
        schemas = list(self.schemas.values())
        check_schemas([*schemas, answer] if answer is not None else schemas)
        lines = self._said(answer, reasoning)
        several = self.several and form.between
        more = f" ({self._lark(form.between or '')} call){{0,{MOST_CALLS - 1}}}" if several else ""
        coda = f" ({self._lark(form.coda)})?" if form.coda else ""
        lines.append(f"calls: call{more} {self._lark(form.close)}{coda}")
        lines.append("call: " + " | ".join(f"call_{number}" for number in range(len(schemas))))
        for number, (function, schema) in enumerate(zip(self.functions, schemas, strict=True)):
            lines += self._call(f"call_{number}", function, schema)
        return _source(lines, reasoning, free=not self.must and answer is None)

    def _said(self, answer: Mapping[str, Any] | None, reasoning: Reasoning | None) -> list[str]:
        form, marks = self.form, self.marks
        trigger, rest = form.trigger, self._lark(form.lead[len(form.trigger) :])
        opened, opens = f"opened {rest} calls", f"opened: {marks.begins(trigger)}"
        head = f"({marks.lark(form.head)})?" if form.head else ""
        start, stop = reasoning.around_words if reasoning else ("", "")
        if self.must:
            return [f"said: {head} {stop} {opened}", opens]
        if answer is not None:
            return [f"said: answer | {head} {stop} {opened}", opens, *_answer(answer, reasoning)]
        no_words = reasoning.no_words if reasoning else ""
        words = f"said: {start} WORDS {stop}"
        if form.alone:
            # The blanks in front belong to the words: what comes first else tells the two apart.
            banned = pattern_of(without_marks(trigger))
            terminal = rf"WORDS: /(.|\n)*/ & ~/\s*{banned}(.|\n)*/{no_words}"
            return [f"{words} | {head} {stop} {opened}", opens, terminal]
        until = marks.until("until_call", "WORDS", trigger, f"{head} {start}", stop)
        return [f"{words} | until_call {rest} calls", *until, rf"WORDS: /(.|\n)*/{no_words}"]

    def _call(self, rule: str, function: Function, schema: Mapping[str, Any]) -> list[str]:
        form, lenient = self.form, not function.strict
        before, _, behind = form.call.replace(NAME, function.name).partition(ARGUMENTS)
        lines: list[str] = []
        written = f"%json {guided(schema, lenient=lenient)}"
        if form.tagged is not None:
            follows = [form.close, form.between or ""]
            tagged = TaggedGrammar(rule, form.tagged, schema, self.marks, follows, lenient=lenient)
            lines, written = tagged.lines, f"{rule}_args"
        return [f"{rule}: {self._lark(before)} {written} {self._lark(behind)}", *lines]

    def _lark(self, mark: str) -> str:
        """A mark in a grammar; what of it is JSON may have other blanks."""
        length = "{9}" if self.form.id_style == 1 else "{1,64}"
        written = {ID: f"[A-Za-z0-9_.:-]{length}", INDEX: "[0-9]{1,3}"}
        if self.form.tagged is not None or ('"' not in mark and not mark.strip().startswith(tuple("}]{,"))):
            return self.marks.lark(mark, written)
        marked = _IN_JSON.sub(_ANY_BLANK, mark)
        return self.marks.lark(marked, written | {_ANY_BLANK: _BLANK})

    @property
    def schemas(self) -> dict[str, Mapping[str, Any]]:
        return {each.name: {"type": "object", **(each.parameters or NO_ARGUMENTS)} for each in self.functions}

    def at_fault(self, error: SchemaRefused) -> str:
        number = (error.rule or "").removeprefix("call_").split("_")[0]
        return f' parameters of "{self.functions[int(number)].name}":' if number.isdecimal() else ""

    def new_id(self, name: str, number: int) -> str:
        drawn = "".join(secrets.choice(_ID_SIGNS) for _ in range(_ID_LENGTH))
        return ID_STYLES[self.form.id_style].format(name=name, number=number, drawn=drawn)


def tool_use(
    tools: Sequence[Tool] | None, choice: ToolChoice | None, several: bool | None, model: AnsweringModel
) -> ToolUse | None:
    """How a request uses tools; None where it has none, or may call none.

    Raises:
        BadRequest: two functions have one name, or the one to be called is not there.
        UnsupportedFeature: how this model calls tools could not be learned from its chat template.
    """
    if not tools:
        if choice not in (None, "none", "auto"):
            raise BadRequest("tool_choice: there are no tools.", param="tool_choice")
        return None
    functions = [tool.function for tool in tools]
    names = [function.name for function in functions]
    if len(set(names)) < len(names):
        raise BadRequest("tools: two functions have the same name.", param="tools")
    if isinstance(choice, NamedTool):
        functions = [each for each in functions if each.name == choice.function.name]
        if not functions:
            raise BadRequest("tool_choice: there is no such function in tools.", param="tool_choice")
    if choice == "none" or not model.chats:
        return None
    form = model.answers.tools
    if form is None:
        raise UnsupportedFeature(f"tools: {model.answers.no_tools}.", param="tools")
    named = isinstance(choice, NamedTool)
    return ToolUse(
        form,
        tools,
        functions,
        must=named or choice == "required",
        several=several is not False and not named,
        marks=model.answers.special,
    )
