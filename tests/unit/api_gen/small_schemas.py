"""Twenty-five JSON schemas as applications send them, small ones."""

from typing import Any

Schema = dict[str, Any]


def _object(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Schema, most: int = 3) -> Schema:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": most}


def _one_of(*values: str) -> Schema:
    return {"enum": list(values)}


_TEXT: Schema = {"type": "string", "maxLength": 40}
_COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": 999}
_NUMBER: Schema = {"type": "number"}
_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_FLAG: Schema = {"type": "boolean"}

SMALL_SCHEMAS: tuple[Schema, ...] = (
    _object(name=_TEXT, age=_COUNT),
    _object(title=_TEXT, year=_COUNT, good=_FLAG),
    _object(color=_one_of("red", "green", "blue"), size=_one_of("small", "medium", "large")),
    _object(tags=_list(_TEXT)),
    _object(latitude=_NUMBER, longitude=_NUMBER),
    _object(answer=_FLAG, why=_TEXT),
    _object(items=_list(_object(id=_COUNT, count=_COUNT))),
    _object(date={"type": "string", "format": "date"}, place=_TEXT),
    _object(email={"type": "string", "format": "email"}, active=_FLAG),
    _object(level=_one_of("low", "high"), message=_TEXT, code=_COUNT),
    _object(a=_COUNT, b=_COUNT, c=_COUNT, d=_COUNT),
    _object(flags=_list(_FLAG, 8)),
    _object(kind=_one_of("cat", "dog"), name=_TEXT, legs=_COUNT),
    _object(question=_TEXT, options=_list(_TEXT, 4), correct=_COUNT),
    _object(sentiment=_one_of("positive", "negative", "neutral"), score=_SHARE),
    _object(first=_TEXT, last=_TEXT, born=_COUNT),
    _object(code={"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}, count=_COUNT),
    _object(outer=_object(x=_COUNT, inner=_object(good=_FLAG, text=_TEXT))),
    _object(matrix=_list(_list(_COUNT))),
    _object(id={"type": "string", "format": "uuid"}),
    _object(summary={"type": "string", "maxLength": 120}),
    _object(steps=_list(_object(number=_COUNT, text=_TEXT), 2)),
    {"anyOf": [_object(yes=_TEXT), _object(no=_TEXT)]},
    _list(_one_of("a", "b", "c", "d"), 6),
    _object(price=_NUMBER, currency=_one_of("EUR", "USD"), paid=_FLAG, buyer=_TEXT),
)
