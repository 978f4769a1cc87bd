"""The fields of a request's body that nobody knows, each with the known one that is nearest."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import chain
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from ttmark.shared.schemas.fields import ClosedPart, RequestPart

_LONGEST_NAME = 64
_ELSEWHERE = {
    "messages": ("input",),
    "input": ("inputs", "messages", "prompt"),
    "prompt": ("messages", "input"),
    "instructions": ("messages",),
    "response_format": ("text.format",),
    "structured_outputs": ("text.format",),
    "guided_json": ("text.format",),
    "text": ("response_format",),
    "function": ("name",),
    "name": ("function.name",),
    "description": ("function.description",),
    "parameters": ("function.parameters",),
    "strict": ("function.strict", "json_schema.strict"),
}
"""What one of OpenAI's APIs calls a field, and where the others have it."""


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field that nobody knows.

    Attributes:
        prefix: the path from the body to its object, such as `messages[0].`.
        known: the fields that the object may have.
        holder: the object.
        name: what it is called there.
        closed: whether it stands in a part of our own.
    """

    prefix: str
    known: Collection[str]
    holder: dict[str, Any]
    name: str
    closed: bool

    @property
    def path(self) -> str:
        """From the body to it; a long name is cut."""
        return self.prefix + self.name[:_LONGEST_NAME]

    @property
    def nearest(self) -> str | None:
        """The path of a known field with a similar name. To look for one costs more than all the rest."""
        found = _nearest(self.name[:_LONGEST_NAME], self.known)
        return found and self.prefix + found

    @property
    def message(self) -> str:
        """What a client is told."""
        nearest = self.nearest
        meant = f"; did you mean '{nearest}'?" if nearest else "."
        return f"Unknown field '{self.path}'{meant}"


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a value may be, as far as it has fields.

    Attributes:
        parts: of an object.
        items: of a list.
    """

    parts: tuple[type[BaseModel], ...] = ()
    items: "_Shape | None" = None


def unknown_fields(body: type[BaseModel], value: Any) -> Iterator[UnknownField]:
    """Those of a JSON value that is to be a `body`, at any depth.

    An object that may be several things is taken for the one whose constants it has and whose fields it fits
    best. What is no object or list where there should be one is left to validation.
    """
    return _found(_Shape((body,)), value, "")


def _found(shape: _Shape, value: Any, path: str) -> Iterator[UnknownField]:
    if isinstance(value, dict) and shape.parts:
        part = _meant(shape.parts, value)
        if part is not None:
            yield from _found_in(part, value, f"{path}." if path else "")
    elif isinstance(value, list) and shape.items is not None:
        for index, item in enumerate(value):
            yield from _found(shape.items, item, f"{path}[{index}]")


def _found_in(part: type[BaseModel], value: dict[str, Any], prefix: str) -> Iterator[UnknownField]:
    shapes = _shapes(part)
    for name, item in value.items():
        if name in shapes:
            yield from _found(shapes[name], item, prefix + name)
            continue
        closed = not issubclass(part, RequestPart) or issubclass(part, ClosedPart)
        yield UnknownField(prefix, shapes.keys(), value, name, closed)


def _nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that is meant: topP is top_p; max_tokens is max_output_tokens where that is there."""
    plain = name.replace("_", "").lower()
    same = (other for other in known if other.replace("_", "") == plain)
    longer = (other for other in known if set(name.split("_")) < set(other.split("_")))
    elsewhere = (other for other in _ELSEWHERE.get(name, ()) if other.partition(".")[0] in known)
    return next(chain(same, elsewhere, longer, get_close_matches(name, known, n=1, cutoff=0.7)), None)


def _meant(parts: Sequence[type[BaseModel]], value: dict[str, Any]) -> type[BaseModel] | None:
    fitting = [part for part in parts if all(value.get(name, of[0]) in of for name, of in _constants(part))]
    return min(fitting, key=lambda part: len(value.keys() - _shapes(part).keys()), default=None)


@cache
def _shapes(part: type[BaseModel]) -> dict[str, _Shape]:
    """Of the fields of a part, by the names that JSON has for them."""
    return {
        field.alias or name: _shape(field.annotation) or _Shape() for name, field in part.model_fields.items()
    }


@cache
def _constants(part: type[BaseModel]) -> list[tuple[str, tuple[Any, ...]]]:
    """The fields that have one of a few values, with these."""
    fields = part.model_fields.items()
    return [(name, get_args(f.annotation)) for name, f in fields if get_origin(f.annotation) is Literal]


def _shape(kind: Any) -> _Shape | None:
    """None: it has no fields, at any depth."""
    origin, of = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _shape(of[0])
    if origin in (Union, UnionType):
        shapes = [shape for each in of if (shape := _shape(each)) is not None]
        items = next((shape.items for shape in shapes if shape.items is not None), None)
        return _Shape(tuple(part for shape in shapes for part in shape.parts), items) if shapes else None
    if origin is list:
        items = _shape(of[0])
        return _Shape(items=items) if items else None
    return _Shape((kind,)) if isinstance(kind, type) and issubclass(kind, BaseModel) else None
