"""Long lists are validated in slices: in one call they would keep the interpreter from all other threads."""

from collections.abc import Callable
from typing import Any

from pydantic import BeforeValidator, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError


def sliced(
    value: list[Any], size: int, before: Callable[[object], object], handler: Callable[[object], Any]
) -> list[Any]:
    """What `handler` makes of the list, `size` items at a time; the first wrong slice ends it.

    Raises:
        ValidationError: with the places of the wrong items in the whole list.
    """
    found: list[Any] = []
    for start in range(0, len(value), size):
        try:
            found += handler(before(value[start : start + size]))
        except ValidationError as error:
            raise _moved(error, start) from None
    return found


def few(most: int) -> BeforeValidator:
    """Refuses what holds more values than so many, at any depth, before they are validated."""

    def check(value: object) -> object:
        waiting, seen = [value], 0
        while waiting:
            one = waiting.pop()
            inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
            seen += len(inner)
            if seen > most:
                raise ValueError(f"must hold at most {most:,} values")
            waiting += inner
        return value

    return BeforeValidator(check)


def _moved(error: ValidationError, start: int) -> ValidationError:
    """The error with the places of its items in the whole list."""
    details: list[InitErrorDetails] = []
    for one in error.errors(include_url=False):
        first, *inner = one["loc"]
        place = (start + first, *inner) if isinstance(first, int) else one["loc"]
        said = PydanticCustomError(one["type"], one["msg"])
        details.append({"type": said, "loc": place, "input": one["input"]})
    return ValidationError.from_exception_data(error.title, details)
