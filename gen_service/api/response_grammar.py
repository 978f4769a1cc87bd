"""From what a request asks of its answer to the grammar that its completions keep to."""

import asyncio
from collections.abc import Mapping
from typing import Any

from ttmark.gen_service.api.backend import ServedModel
from ttmark.gen_service.api.reasoning import Reasoning
from ttmark.gen_service.api.tool_grammar import answer_source
from ttmark.gen_service.api.tools import ToolUse
from ttmark.gen_service.decoding.grammar import Grammar, GrammarSource
from ttmark.gen_service.decoding.json_grammar import ANY_OBJECT, SchemaRefused, TokenizerUnsuitable
from ttmark.shared.http.service_errors import BadRequest, UnsupportedFeature
from ttmark.shared.schemas.chat import (
    ChoiceFormat,
    GrammarFormat,
    JsonObjectFormat,
    JsonSchemaFormat,
    RegexFormat,
    ResponseFormat,
    TextFormat,
)

COMPILE_SECONDS = 5.0


async def response_grammar(
    asked: ResponseFormat | None,
    tools: ToolUse | None,
    model: ServedModel,
    reasoning: Reasoning | None,
    *,
    ignore_eos: bool,
    field: str = "response_format",
) -> Grammar | None:
    """The grammar of a request; None where it asks for text. Compiled in a thread of the model's own.

    Args:
        asked: the form of the answer, which the request calls `field`; JSON or text where there are tools.
        tools: that it may call.
        reasoning: that may come first, and is held to nothing.

    Raises:
        BadRequest: what is asked for cannot be kept to, or `ignore_eos` contradicts it.
        UnsupportedFeature: the model cannot be held to a grammar.
    """
    if tools is not None:
        field = "tools"
    elif asked is None or isinstance(asked, TextFormat):
        return None
    if ignore_eos:
        raise BadRequest(f"ignore_eos: not available together with {field}.", param="ignore_eos")
    try:
        source = tools.source(_schema(asked), reasoning) if tools else _source(asked, reasoning, field)
        compiled = asyncio.wrap_future(model.grammars.submit(source))
        return await asyncio.wait_for(compiled, COMPILE_SECONDS)
    except SchemaRefused as error:
        where = tools.at_fault(error) if tools else ""
        raise BadRequest(f"{field}:{where} {error}.", param=field) from error
    except TimeoutError:
        what = "grammar" if tools is None and _schema(asked) is None else "schema"
        message = f"{field}: the {what} could not be prepared within {COMPILE_SECONDS:.0f} s."
        raise BadRequest(message, param=field) from None
    except TokenizerUnsuitable as error:
        raise UnsupportedFeature(f"{field}: {error}.", param=field) from error


def _schema(asked: ResponseFormat | None) -> Mapping[str, Any] | None:
    match asked:
        case JsonObjectFormat():
            return ANY_OBJECT
        case JsonSchemaFormat(json_schema=named):
            return named.json_schema
        case _:
            return None


def _source(asked: ResponseFormat | None, reasoning: Reasoning | None, field: str) -> GrammarSource:
    """The grammar of a form that is not text."""
    schema = _schema(asked)
    if schema is not None:
        return answer_source(schema, reasoning)
    if reasoning is not None and reasoning.opened:
        raise UnsupportedFeature(
            f"{field}: this model reasons before it answers, and only text or JSON can follow.", param=field
        )
    match asked:
        case RegexFormat(regex=regex):
            return GrammarSource("regex", regex)
        case ChoiceFormat(choice=texts):
            return GrammarSource.of_choice(texts)
        case GrammarFormat(grammar=grammar):
            return GrammarSource("grammar", grammar)
        case _:
            raise AssertionError(asked)
