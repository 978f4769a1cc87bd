"""What in a JSON schema llguidance cannot keep to, and where it stands."""

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from llguidance import LLMatcher

Schema = Mapping[str, Any]

_COUNTS = {f"{end}{what}" for end in ("min", "max") for what in ("Items", "Length", "Properties", "Contains")}
_DATA = {"const", "enum", "default", "examples"}
_DEFINITIONS = ("$defs", "definitions")
_NAMED = (*_DEFINITIONS, "properties", "patternProperties", "dependentSchemas")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_SINGLE = ("items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else")
# What a schema that need not be kept to may lose, and what loses its sense with it.
_SET_ASIDE = {
    "pattern": (),
    "patternProperties": ("additionalProperties", "unevaluatedProperties"),
    "$ref": (),
}
_LIST_KEYWORDS = {"type", "items", "uniqueItems", "minItems", "maxItems"}
_MOST_OF_LISTS = 32 * 1024  # bytes
_KINDS = {"enum": list, "pattern": str, "format": str, "$ref": str}
_SECONDS = 1.0
# Days of the calendar: 29 February in leap years alone.
DATE = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    r"|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)


def exact(schema: Any, whole: Any = None) -> Any:
    """A schema that the library reads as the standard does.

    It takes a count that is written `2.0` for no count, and 29 February for a day of any year, and does not
    know `uniqueItems`: lists without repeats of a few values are named one by one.

    Args:
        whole: what references lead into; the schema itself if None.
    """
    whole = schema if whole is None else whole
    if isinstance(schema, list):
        return [exact(each, whole) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    read = {key: value if key in _DATA else exact(value, whole) for key, value in schema.items()}
    for key in _COUNTS & read.keys():
        if isinstance(read[key], float) and read[key].is_integer():
            read[key] = int(read[key])
    if read.get("format") in ("date", "date-time") and isinstance(read.get("allOf", []), list):
        read["allOf"] = [*read.get("allOf", []), {"pattern": "^" + DATE}]
    if read.get("uniqueItems") is False:
        del read["uniqueItems"]
    lists = _without_repeats(read, whole) if read.get("uniqueItems") is True else None
    if lists is not None:
        read = {key: value for key, value in read.items() if key not in _LIST_KEYWORDS} | {"enum": lists}
    return read


def _without_repeats(schema: Schema, whole: Any) -> list[list[Any]] | None:
    """All lists that fit, of a list of named values without repeats; None: of others, or too many."""
    items = schema.get("items")
    if isinstance(items, Mapping) and str(items.get("$ref", "")).startswith("#"):
        items = _target(whole, items["$ref"])
    if not isinstance(items, Mapping) or not {"type", "enum", "title", "description"} >= items.keys():
        return None
    values = items.get("enum", [True, False] if items.get("type") == "boolean" else None)
    least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    if not isinstance(values, list) or not all(isinstance(each, str | bool) for each in values):
        return None
    if {"prefixItems", "contains", "enum", "const"} & schema.keys() or len(set(values)) < len(values):
        return None
    lengths = range(least, int(min(most, len(values))) + 1)
    count = sum(math.perm(len(values), length) for length in lengths)
    if not 0 < count * len(json.dumps(values)) <= _MOST_OF_LISTS:
        return None
    return [list(each) for length in lengths for each in permutations(values, length)]


def malformed(schema: Any) -> Sequence[str] | None:
    """The path to what a schema has in place of another kind of value; None: nothing.

    What does not say what is allowed in it (`default`, `title`, unknown keywords) may be anything.
    """
    if not isinstance(schema, Mapping):
        return None if isinstance(schema, bool) else ()
    for key, value in schema.items():
        parts: Iterable[tuple[Any, Any]] = ()
        if key in _NAMED:
            fits, parts = isinstance(value, Mapping), value.items() if isinstance(value, Mapping) else ()
        elif key in _LISTED and (key != "items" or isinstance(value, list)):
            fits, parts = isinstance(value, list), enumerate(value) if isinstance(value, list) else ()
        elif key in _SINGLE:
            fits, parts = True, [(None, value)]
        elif key == "required":
            fits = isinstance(value, list) and all(isinstance(each, str) for each in value)
        elif key == "type":
            kinds = value if isinstance(value, list) else [value]
            fits = all(isinstance(each, str) for each in kinds)
        elif key in _COUNTS:
            fits = isinstance(value, int | float) and value >= 0 and float(value).is_integer()
        else:
            fits = isinstance(value, _KINDS.get(key, object))
        if not fits:
            return (key,)
        for name, part in parts:
            if (path := malformed(part)) is not None:
                return (key, *(() if name is None else (str(name),)), *path)
    return None


def pattern_fault(pattern: str) -> bool:
    return bool(_said({"type": "string", "pattern": f"({pattern})"}))


def first_fault(schema: Schema) -> tuple[Sequence[str], str] | None:
    """The path to the keyword that the library cannot keep to, and why; None if it takes the schema.

    The path ends at the smallest schema in it that has the same fault, if no keyword alone is at fault.

    Args:
        schema: its `x-guidance` holds the library's options.
    """
    error, until = _said(schema), time.thread_time() + _SECONDS
    shared = {key: schema[key] for key in (*_DEFINITIONS, "x-guidance") if key in schema}

    def is_at_fault(part: Schema) -> bool:
        return time.thread_time() < until and _said({**shared, **part}) == error

    if not error:
        return None
    path: list[str] = []
    inner: tuple[Sequence[str], Schema] | None = ((), schema)
    while inner is not None:
        path += inner[0]
        schema = inner[1]
        inner = next((found for found in _parts(schema) if is_at_fault(found[1])), None)
    keywords = (key for key in schema if key not in shared and key != "type")
    path += [key for key in keywords if not is_at_fault({k: v for k, v in schema.items() if k != key})][:1]
    reason = "not supported" if error.startswith("Unimplemented keys") else error.rpartition("error: ")[2]
    return path, " ".join(reason.split())


def set_aside(schema: Schema, path: Sequence[str]) -> Schema | None:
    """The schema without a keyword at fault; None where it is none that may be left out."""
    *above, keyword = path or ("",)
    whole: dict[str, Any] = json.loads(json.dumps(schema))
    part: Any = whole
    for step in above:
        part = part[int(step) if isinstance(part, list) else step]
    if keyword not in _SET_ASIDE or str(part[keyword]).startswith("#"):
        return None
    for each in (keyword, *_SET_ASIDE[keyword]):
        part.pop(each, None)
    return whole


def never_ends(schema: Schema) -> bool:
    """Whether each JSON that fits would hold another that fits, without an end."""
    budget = iter(range(10_000))

    def ends(part: Any, above: frozenset[str]) -> bool:
        if not isinstance(part, Mapping) or next(budget, None) is None:
            return True
        found = [ends(each, above) for each in _needed(part)]
        reference = part.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            found.append(reference not in above and ends(_target(schema, reference), above | {reference}))
        choices = [part[key] for key in ("anyOf", "oneOf") if isinstance(part.get(key), list)]
        found += [any(ends(each, above) for each in choice) for choice in choices]
        return all(found)

    return not ends(schema, frozenset({"#"}))


def _needed(schema: Schema) -> Iterator[Any]:
    """The schemas to each of which something in a JSON has to fit."""
    properties, required = schema.get("properties"), schema.get("required")
    if schema.get("type") == "object" and isinstance(properties, Mapping) and isinstance(required, list):
        yield from (properties[name] for name in required if name in properties)
    least, first = schema.get("minItems"), schema.get("prefixItems") or []
    if schema.get("type") == "array" and isinstance(least, int) and isinstance(first, list):
        yield from first[:least]
        if least > len(first):
            yield schema.get("items", True)
    yield from schema["allOf"] if isinstance(schema.get("allOf"), list) else ()


def _target(schema: Any, reference: str) -> Any:
    """What a reference into the schema itself leads to; any JSON where it is not there."""
    for step in reference[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        schema = schema.get(step, {}) if isinstance(schema, Mapping) else {}
    return schema


def _said(schema: Schema) -> str:
    """What the library says against a schema; empty if it takes it."""
    try:
        error = LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(json.dumps(schema)))
    except ValueError as refusal:
        error = str(refusal)
    return error.partition("\n  while processing")[0]


def _parts(schema: Schema) -> Iterator[tuple[Sequence[str], Schema]]:
    """The schemas that stand right in a schema, and the way to them."""
    found: list[tuple[Sequence[str], Any]] = []
    for key in _NAMED:
        named = schema.get(key)
        found += [((key, name), part) for name, part in named.items()] if isinstance(named, Mapping) else []
    for key in _LISTED:
        listed = schema.get(key)
        numbered = enumerate(listed) if isinstance(listed, list) else ()
        found += [((key, str(number)), part) for number, part in numbered]
    found += [((key,), schema.get(key)) for key in _SINGLE]
    yield from ((way, part) for way, part in found if isinstance(part, Mapping))
