"""Objects of our own in the body of a request: a field that is not known is an error."""

from difflib import get_close_matches
from typing import Any

from pydantic import ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from ttmark.shared.schemas.request_part import RequestPart

_LONGEST_NAME = 64


class ClosedPart(RequestPart):
    """A part whose first unknown field is named, with the nearest that there is."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, given: Any) -> Any:
        unknown = [name for name in given if name not in cls.model_fields] if isinstance(given, dict) else []
        if unknown:
            name = str(unknown[0])[:_LONGEST_NAME]
            (nearest,) = get_close_matches(name, cls.model_fields, n=1, cutoff=0)
            problem = PydanticCustomError(
                "unknown_field", "there is no such field; did you mean {nearest}?", {"nearest": nearest}
            )
            raise ValidationError.from_exception_data(
                cls.__name__, [InitErrorDetails(type=problem, loc=(name,), input=None)]
            )
        return given
