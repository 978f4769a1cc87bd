"""The one form that a request asks of its answer, whichever of OpenAI's and vLLM's fields says it."""

import json
from collections.abc import Iterator
from typing import Any

from ttmark.gen_service.api.tools import ToolUse
from ttmark.shared.http.service_errors import BadRequest
from ttmark.shared.schemas.chat import (
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
from ttmark.shared.schemas.sampling import ChoiceFields

Asked = tuple[str, ResponseFormat | None]


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
        named = NamedSchema.model_validate({"name": "json", "schema": _schema(schema, field)})
        yield field, JsonSchemaFormat(type="json_schema", json_schema=named)
    if (regex := getattr(holder, f"{name}regex")) is not None:
        yield f"{prefix}regex", RegexFormat(type="regex", regex=regex)
    if (choice := getattr(holder, f"{name}choice")) is not None:
        yield f"{prefix}choice", ChoiceFormat(type="choice", choice=choice)
    if (grammar := getattr(holder, f"{name}grammar")) is not None:
        yield f"{prefix}grammar", GrammarFormat(type="grammar", grammar=grammar)


def _schema(given: str | dict[str, Any], field: str) -> dict[str, Any]:
    """A schema, which may be written as a text."""
    try:
        schema = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        schema = None
    if not isinstance(schema, dict):
        raise BadRequest(f"{field}: must be a JSON schema, as an object or as its text.", param=field)
    return schema
