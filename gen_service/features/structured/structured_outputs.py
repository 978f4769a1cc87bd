"""The one form that a request asks of its answer, whichever field says it, and the grammar that keeps it."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from ttmark.gen_service.features.structured.answer_marks import AnsweringModel
from ttmark.gen_service.features.structured.grammars.grammar import Grammar, GrammarSource
from ttmark.gen_service.features.structured.grammars.json_grammar import (
    ANY_OBJECT,
    MAX_SCHEMA_BYTES,
    SchemaRefused,
)
from ttmark.gen_service.features.structured.grammars.vocabulary import TokenizerUnsuitable
from ttmark.gen_service.features.structured.reasoning import Reasoning
from ttmark.gen_service.features.structured.tools import ToolUse, answer_source
from ttmark.shared.http.request_body import HttpLimits, parse_json
from ttmark.shared.http.service_errors import BadRequest, MalformedJson, Unavailable, UnsupportedFeature
from ttmark.shared.schemas.generation.chat import (
    ChatRequest,
    ChoiceFormat,
    GrammarFormat,
    JsonObjectFormat,
    JsonSchemaFormat,
    NamedSchema,
    RegexFormat,
    ResponseFormat,
    TextFormat,
)
from ttmark.shared.schemas.generation.sampling import ChoiceFields

Asked = tuple[str, ResponseFormat | None]
_BLANKS = 4  # a text may be longer by as much: it may be indented


def asked_form(body: ChoiceFields, tools: ToolUse | None = None) -> Asked:
    """The field that asks for a form, and the form; None where any text will do.

    Raises:
        BadRequest: two fields ask for one, what one holds is no schema, or tools may be called beside another
            form than JSON.
    """
    first, *others = [*_asked(body), ("response_format", None)]
    if len(others) > 1:
        field = others[0][0]
        raise BadRequest(f"{field}: not available together with {first[0]}.", param=field)
    field, form = first
    if tools is not None and isinstance(form, RegexFormat | ChoiceFormat | GrammarFormat):
        raise BadRequest(f"{field}: not available together with tools.", param=field)
    return first


def _asked(body: ChoiceFields) -> Iterator[Asked]:
    asked = body.response_format if isinstance(body, ChatRequest) else None
    if asked is not None and not isinstance(asked, TextFormat):
        yield "response_format", asked
    outputs = body.structured_outputs
    if outputs is not None:
        where, before = "structured_outputs", len("structured_outputs.")
        found = list(_of_kinds(outputs.json_schema, outputs, f"{where}."))
        if outputs.json_object:
            found.append((f"{where}.json_object", JsonObjectFormat(type="json_object")))
        if len(found) != 1:
            names = ", ".join(field[before:] for field, _ in found) or "none"
            raise BadRequest(
                f"{where}: must have one of json, regex, choice, grammar and json_object; it has {names}.",
                param=where,
            )
        yield found[0]
    yield from _of_kinds(body.guided_json, body, "guided_")


def _of_kinds(schema: Any, holder: Any, prefix: str) -> Iterator[Asked]:
    """What fields that begin with a prefix ask for; those of a `holder` are called as vLLM calls them."""
    name = "" if prefix.endswith(".") else prefix
    if schema is not None:
        field = f"{prefix}json"
        named = NamedSchema.model_validate({"name": "json", "schema": _given_schema(schema, field)})
        yield field, JsonSchemaFormat(type="json_schema", json_schema=named)
    if (regex := getattr(holder, f"{name}regex")) is not None:
        yield f"{prefix}regex", RegexFormat(type="regex", regex=regex)
    if (choice := getattr(holder, f"{name}choice")) is not None:
        yield f"{prefix}choice", ChoiceFormat(type="choice", choice=choice)
    if (grammar := getattr(holder, f"{name}grammar")) is not None:
        yield f"{prefix}grammar", GrammarFormat(type="grammar", grammar=grammar)


def _given_schema(given: str | dict[str, Any], field: str) -> dict[str, Any]:
    if isinstance(given, str) and len(given) > _BLANKS * MAX_SCHEMA_BYTES:
        raise BadRequest(
            f"{field}: the schema is larger than the limit of {MAX_SCHEMA_BYTES} bytes.", param=field
        )
    try:
        schema = parse_json(given.encode(), HttpLimits()) if isinstance(given, str) else given
    except MalformedJson:
        schema = None
    if not isinstance(schema, dict):
        raise BadRequest(f"{field}: must be a JSON schema, as an object or as its text.", param=field)
    return schema


COMPILE_SECONDS = 5.0


async def response_grammar(
    asked: ResponseFormat | None,
    tools: ToolUse | None,
    model: AnsweringModel,
    reasoning: Reasoning | None,
    *,
    ignore_eos: bool,
    field: str,
) -> Grammar | None:
    """The grammar of a request; None where it asks for text. Compiled in a thread of the model's own.

    Args:
        asked: the form of the answer, which the request calls `field`; JSON or text where there are tools.
        reasoning: that may come first, and is held to nothing.

    Raises:
        BadRequest: what is asked for cannot be kept to, or `ignore_eos` contradicts it.
        UnsupportedFeature: the model cannot be held to a grammar.
        Unavailable: forms of other requests took the time.
    """
    if tools is not None:
        field = "tools"
    elif asked is None or isinstance(asked, TextFormat):
        return None
    if ignore_eos:
        raise BadRequest(f"ignore_eos: not available together with {field}.", param="ignore_eos")
    try:
        source = tools.source(_schema(asked), reasoning) if tools else _source(asked, reasoning, field)
        compiling = model.grammars.submit(source)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(compiling), COMPILE_SECONDS)
        except TimeoutError:
            if compiling.cancel():  # it did not begin: those of others are being prepared
                message = f"{field}: the forms of other requests are being prepared."
                raise Unavailable(message, retry_after=COMPILE_SECONDS) from None
        # It may have begun late.
        return await asyncio.wait_for(asyncio.wrap_future(compiling), COMPILE_SECONDS)
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
        case JsonObjectFormat(json_schema=schema):
            return ANY_OBJECT if schema is None else {"type": "object", **schema}
        case JsonSchemaFormat(json_schema=named):
            return named.json_schema
        case _:
            return None


def _source(asked: ResponseFormat | None, reasoning: Reasoning | None, field: str) -> GrammarSource:
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
