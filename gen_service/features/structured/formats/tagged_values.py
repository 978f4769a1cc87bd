"""Values of arguments that stand between tags: read, and as parts of a grammar."""

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

_MOST = 20_000  # characters of a value in Python's spelling
_PYTHON = re.compile(r"\b(True|False|None)\b|'")


def kinds(schema: Any) -> set[str]:
    """The types that a schema allows; empty: it does not say."""
    if not isinstance(schema, Mapping):
        return set()
    given = schema.get("type")
    if isinstance(given, str):
        return {given}
    if isinstance(given, list):
        return {each for each in given if isinstance(each, str)}
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(values, list) and values and all(isinstance(value, str) for value in values):
        return {"string"}
    return set()


def resolved(schema: Any, whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that a reference within the `whole` one leads to, with the types of its alternatives."""
    for _ in range(16):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        schema = whole
        for part in reference[2:].split("/"):
            schema = schema.get(part) if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping):
        return {}
    options = [each for word in ("anyOf", "oneOf") for each in schema.get(word) or ()]
    found = [
        kinds(resolved(each, {})) for each in options if isinstance(each, Mapping) and "$ref" not in each
    ]
    types = sorted(set[str]().union(*found)) if len(found) == len(options) else []
    return {"type": types, **schema} if types else schema


def kind_of(value: Any) -> str:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")


def fits(value: Any, schema: Any) -> bool:
    """Whether a value is of a type that a schema allows."""
    kind, allowed = kind_of(value), kinds(schema)
    return not allowed or kind in allowed or (kind == "integer" and "number" in allowed)


def value_of(text: str, inner: str) -> tuple[Any, bool]:
    """The value that a text spells in JSON, in Python or with other marks around texts; and whether it does.

    Args:
        inner: the marks around texts; empty: quotes.
    """
    try:
        return json.loads(_as_json(text, inner) if inner else text, strict=False), True
    except (ValueError, RecursionError):
        pass
    if len(text) <= _MOST and _PYTHON.search(text):
        try:
            return json.loads(json.dumps(ast.literal_eval(text))), True
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
    return None, False


def _as_json(text: str, inner: str) -> str:
    """Texts between marks, and names without any, in JSON's quotes."""
    quote = re.escape(inner)
    parts = re.compile(rf"{quote}(?P<text>(?:.|\n)*?){quote}|(?P<key>[^\s{{}}\[\],:]+)(?=\s*:)")

    def quoted(found: re.Match[str]) -> str:
        return json.dumps(found["text"] if found["text"] is not None else found["key"])

    return parts.sub(quoted, text)
