"""The tools of one request: which may be called, and the grammar of an answer that may or must call them."""

import json
import secrets
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ttmark.gen_service.api.backend import ServedModel
from ttmark.gen_service.api.reasoning import Reasoning
from ttmark.gen_service.api.tool_formats import MOST_CALLS, ToolFormat
from ttmark.gen_service.decoding.grammar import GrammarSource
from ttmark.gen_service.decoding.json_grammar import SchemaRefused, check_schemas, check_size, guided
from ttmark.shared.http.service_errors import BadRequest, UnsupportedFeature
from ttmark.shared.schemas.tools import Function, NamedTool, Tool, ToolChoice

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
    return _source([f"said: %json {guided(answer)}"], reasoning, free=False)


def _source(rules: Sequence[str], reasoning: Reasoning | None, *, free: bool) -> GrammarSource:
    """The grammar in which `rules` say what is `said`, after reasoning."""
    start = reasoning.rules("said") if reasoning else ["start: said"]
    text = "\n".join(["%llguidance {}", *start, *rules, ""])
    return GrammarSource("lark", text, free=free or (reasoning is not None and reasoning.opened))


def _said(form: ToolFormat, tag: str, words: str, *, must: bool, answer: Mapping[str, Any] | None) -> str:
    """What is said, after reasoning; `words` is what restricts words."""
    if must:
        return f"said: {tag} opened"
    if answer is not None:
        return f"said: answer | {tag} opened\nanswer: %json {guided(answer)}"
    if form.sign:
        # The blanks in front belong to the words: what comes first else tells the two apart.
        return f"said: WORDS | {tag} opened\nWORDS: /\\s*([^\\s\\{form.sign}](.|\\n)*)?/{words}"
    return f"said: WORDS | until_tag opened\nuntil_tag[lazy]: WORDS {tag}\nWORDS: /(.|\\n)*/{words}"


_ID_SIGNS = string.ascii_letters + string.digits
_ID_LENGTH = 24


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What the model may call.

    Attributes:
        tools: all of the request's, which the model is shown.
        functions: those that it may call.
        must: whether it has to.
        several: whether it may call more than one.
        tag_token: the format's tag where it is a control token, and so does not show in the text.
    """

    form: ToolFormat
    tools: Sequence[Tool]
    functions: Sequence[Function]
    must: bool
    several: bool
    tag_token: int | None = None

    @property
    def shown(self) -> list[dict[str, Any]]:
        """The tools as chat templates read them."""
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
        if answer is not None and form.sign:
            raise UnsupportedFeature(
                "tools: not available together with a response format for this model, unless a call is "
                "required; its calls could not be told from other answers.",
                param="tools",
            )
        # OpenAI's clients leave the type out at times; arguments are an object whatever they say.
        schemas = [{"type": "object", **(each.parameters or NO_ARGUMENTS)} for each in self.functions]
        check_schemas([*schemas, answer] if answer is not None else schemas)
        tag = f"<[{self.tag_token}]> / ?/" if self.tag_token is not None else json.dumps(form.tag)
        words = reasoning.no_words if reasoning else ""
        lines = [_said(form, tag, words, must=self.must, answer=answer)]
        lines.append(f"opened: {json.dumps(form.opening)} calls")
        several = self.several and form.between
        more = f" ({json.dumps(form.between)} call){{0,{MOST_CALLS - 1}}}" if several else ""
        lines.append(f"calls: call{more} {json.dumps(form.close)}")
        lines.append("call: " + " | ".join(f"call_{number}" for number in range(len(schemas))))
        for number, (function, schema) in enumerate(zip(self.functions, schemas, strict=True)):
            beginning = json.dumps(form.head + function.name + form.middle)
            lines.append(f"call_{number}: {beginning} %json {guided(schema, lenient=not function.strict)}")
        return _source(lines, reasoning, free=not self.must and answer is None)

    def at_fault(self, error: SchemaRefused) -> str:
        """The function whose schema is refused, if it is one."""
        number = (error.rule or "").removeprefix("call_")
        return f' parameters of "{self.functions[int(number)].name}":' if number.isdecimal() else ""

    def new_id(self) -> str:
        """An id for a call."""
        length = self.form.id_length or _ID_LENGTH
        drawn = "".join(secrets.choice(_ID_SIGNS) for _ in range(length))
        return drawn if self.form.id_length else f"call_{drawn}"


def tool_use(
    tools: Sequence[Tool] | None, choice: ToolChoice | None, several: bool | None, model: ServedModel
) -> ToolUse | None:
    """How a request uses tools; None where it has none, or may call none.

    Raises:
        BadRequest: two functions have one name, or the one to be called is not there.
        UnsupportedFeature: calls of this model do not show in its text.
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
    if choice == "none" or model.chat_template is None:
        return None
    form = model.chat_template.tool_format
    tag_token = model.control_token(form.tag) if form.tag else None
    if tag_token is not None and not form.sign:
        raise UnsupportedFeature(
            f"tools: {form.tag} is a control token of this model, which does not show in its text.",
            param="tools",
        )
    named = isinstance(choice, NamedTool)
    return ToolUse(
        form,
        tools,
        functions,
        must=named or choice == "required",
        several=several is not False and not named,
        tag_token=tag_token,
    )
