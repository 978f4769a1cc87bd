"""The grammar of an answer that may or must call tools, in llguidance's dialect of Lark."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ttmark.gen_service.api.tool_formats import MOST_CALLS, ToolFormat
from ttmark.gen_service.decoding.grammar_source import GrammarSource
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
) -> GrammarSource:
    """Calls of `functions`, and unless the answer `must` be a call, words in front of them or instead.

    Args:
        several: whether there may be more than one call.
        answer: the schema of an answer that is no call, in place of words.
        tag_token: the format's tag where it is a control token; such a tag does not show in the text.

    Raises:
        SchemaRefused: the schemas are too large, all together.
    """
    schemas = [function.parameters or NO_ARGUMENTS for function in functions]
    check_schemas([*schemas, answer] if answer is not None else schemas)
    tag = f"<[{tag_token}]> / ?/" if tag_token is not None else _quoted(form.tag)
    lines = ["%llguidance {}", _start(form, tag, must=must, answer=answer)]
    lines.append(f"opened: {_quoted(form.opening)} calls")
    more = f" ({_quoted(form.between)} call){{0,{MOST_CALLS - 1}}}" if several and form.between else ""
    lines.append(f"calls: call{more} {_quoted(form.close)}")
    lines.append("call: " + " | ".join(f"call_{number}" for number in range(len(functions))))
    for number, (function, schema) in enumerate(zip(functions, schemas, strict=True)):
        beginning = _quoted(form.head + function.name + form.middle)
        lines.append(f"call_{number}: {beginning} %json {guided(schema, lenient=not function.strict)}")
    return GrammarSource("lark", "\n".join(lines) + "\n", free=not must and answer is None)


def _start(form: ToolFormat, tag: str, *, must: bool, answer: Mapping[str, Any] | None) -> str:
    if must:
        return f"start: {tag} opened"
    if answer is not None:
        return f"start: answer | {tag} opened\nanswer: %json {guided(answer)}"
    if form.sign:
        # The blanks in front belong to the words: what comes first else tells the two apart.
        return f"start: WORDS | {tag} opened\nWORDS: /\\s*([^\\s\\{form.sign}](.|\\n)*)?/"
    return f"start: WORDS | until_tag opened\nuntil_tag[lazy]: WORDS {tag}\nWORDS: /(.|\\n)*/"


def _quoted(text: str) -> str:
    return json.dumps(text)
