"""The grammar of an answer that may or must call tools, in llguidance's dialect of Lark."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ttmark.gen_service.api.reasoning import Reasoning
from ttmark.gen_service.api.tool_formats import MOST_CALLS, ToolFormat
from ttmark.gen_service.decoding.grammar import GrammarSource
from ttmark.gen_service.decoding.json_grammar import check_schemas, guided
from ttmark.shared.schemas.tools import Function

NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


def tool_source(
    form: ToolFormat,
    functions: Sequence[Function],
    *,
    must: bool,
    several: bool,
    answer: Mapping[str, Any] | None = None,
    tag_token: int | None = None,
    reasoning: Reasoning | None = None,
) -> GrammarSource:
    """Calls of `functions`, and unless the answer `must` be a call, words in front of them or instead.

    Args:
        several: whether there may be more than one call.
        answer: the schema of an answer that is no call, in place of words.
        tag_token: the format's tag where it is a control token; such a tag does not show in the text.
        reasoning: that may come first, in which a tag opens nothing.

    Raises:
        SchemaRefused: the schemas are too large, all together.
    """
    # OpenAI's clients leave the type out at times; arguments are an object whatever they say.
    schemas = [{"type": "object", **(function.parameters or NO_ARGUMENTS)} for function in functions]
    check_schemas([*schemas, answer] if answer is not None else schemas)
    tag = f"<[{tag_token}]> / ?/" if tag_token is not None else _quoted(form.tag)
    words = reasoning.no_words if reasoning else ""
    lines = ["%llguidance {}", *_start(reasoning), _said(form, tag, words, must=must, answer=answer)]
    lines.append(f"opened: {_quoted(form.opening)} calls")
    more = f" ({_quoted(form.between)} call){{0,{MOST_CALLS - 1}}}" if several and form.between else ""
    lines.append(f"calls: call{more} {_quoted(form.close)}")
    lines.append("call: " + " | ".join(f"call_{number}" for number in range(len(functions))))
    for number, (function, schema) in enumerate(zip(functions, schemas, strict=True)):
        beginning = _quoted(form.head + function.name + form.middle)
        lines.append(f"call_{number}: {beginning} %json {guided(schema, lenient=not function.strict)}")
    return _source(lines, reasoning, free=not must and answer is None)


def answer_source(answer: Mapping[str, Any], reasoning: Reasoning | None) -> GrammarSource:
    """JSON that is valid against the schema `answer`, after `reasoning` if there is any.

    Raises:
        SchemaRefused: the schema is too large.
    """
    if reasoning is None:
        return GrammarSource.of_schema(answer)
    check_schemas([answer])
    return _source(
        ["%llguidance {}", *_start(reasoning), f"said: %json {guided(answer)}"], reasoning, free=False
    )


def _source(lines: Sequence[str], reasoning: Reasoning | None, *, free: bool) -> GrammarSource:
    opened = reasoning is not None and reasoning.opened
    return GrammarSource("lark", "\n".join(lines) + "\n", free=free or opened)


def _start(reasoning: Reasoning | None) -> list[str]:
    return reasoning.rules("said") if reasoning else ["start: said"]


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


def _quoted(text: str) -> str:
    return json.dumps(text)
