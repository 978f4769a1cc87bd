"""From what a request asks of its answer to the grammar that its completions keep to."""

import asyncio
from collections.abc import Mapping
from typing import Any

from ttmark.gen_service.api.backend import ServedModel
from ttmark.gen_service.api.tools import ToolUse
from ttmark.gen_service.decoding.grammar import Grammar
from ttmark.gen_service.decoding.grammar_source import GrammarSource
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
    *,
    ignore_eos: bool,
    field: str = "response_format",
) -> Grammar | None:
    """The grammar of a request; None where it asks for text. Compiled in a thread of the model's own.

    Args:
        asked: the form of the answer, which the request calls `field`; JSON or text where there are tools.
        tools: that it may call.

    Raises:
        BadRequest: what is asked for cannot be kept to, or `ignore_eos` contradicts it.
        UnsupportedFeature: the model cannot be held to a grammar.
    """
    if tools is None and (asked is None or isinstance(asked, TextFormat)):
        return None
    schema = _schema(asked)
    field = field if tools is None else "tools"
    if ignore_eos:
        raise BadRequest(f"ignore_eos: not available together with {field}.", param="ignore_eos")
    try:
        source = _source(asked) if tools is None else tools.source(schema)
        compiled = asyncio.wrap_future(model.grammars.submit(source))
        return await asyncio.wait_for(compiled, COMPILE_SECONDS)
    except SchemaRefused as error:
        raise BadRequest(f"{field}: {error}.", param=field) from error
    except TimeoutError:
        what = "grammar" if schema is None and tools is None else "schema"
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


def _source(asked: ResponseFormat | None) -> GrammarSource:
    match asked:
        case RegexFormat(regex=regex):
            return GrammarSource("regex", regex)
        case ChoiceFormat(choice=texts):
            return GrammarSource.of_choice(texts)
        case GrammarFormat(grammar=grammar):
            return GrammarSource("grammar", grammar)
    return GrammarSource.of_schema(_schema(asked) or {})
