"""Field types, and base classes of bodies, that several requests and answers share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import CoreSchema, core_schema

from ttmark.shared.schemas.slices import sliced

MAX_TOKEN_ID = 2**31 - 1


def _integral(value: object) -> object:
    """To JSON Schema 2.0 is an integer, and some clients write integers so."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _integral_items(value: object) -> object:
    if isinstance(value, list) and any(type(item) is float for item in value):
        return [_integral(item) for item in value]
    return value


def _in_slices(size: int, before: Callable[[object], object] = lambda value: value) -> WrapValidator:
    """For a list that may be long; `before` is done with each slice first."""

    def validate(value: object, handler: ValidatorFunctionWrapHandler) -> Any:
        if isinstance(value, list) and len(value) > size:
            return sliced(value, size, before, handler)
        return handler(before(value))

    return WrapValidator(validate)


def _no_truth_value(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must not be true or false")
    return value


def _no_number(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError("must not be a number")
    return value


WholeNumber = BeforeValidator(_integral)
WholeNumbers = _in_slices(8_192, _integral_items)
InSlices = _in_slices(256)
NoTruthValue = BeforeValidator(_no_truth_value)  # a literal 0 would take false for itself
NoNumber = BeforeValidator(_no_number)  # and a literal false would take 0
TokenId = Annotated[int, Field(ge=0, le=MAX_TOKEN_ID)]
# fail_fast: a long list of wrong items must not become a long list of errors.
TokenIds = Annotated[list[TokenId], Field(min_length=1, fail_fast=True), WholeNumbers]
NonEmptyText = Annotated[str, Field(min_length=1)]


def left_out(description: str | None = None) -> Any:
    """A field of a response that is left out where it does not apply, instead of being null."""
    return Field(default=None, exclude_if=lambda value: value is None, description=description)


@dataclass(frozen=True)
class says:  # noqa: N801 - stands in annotations as a word
    """Replaces whatever pydantic would say about a value with one message on the field itself."""

    message: str

    def __get_pydantic_core_schema__(self, source: Any, inner: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.custom_error_schema(inner(source), "invalid", custom_error_message=self.message)


def not_supported(only: str = "") -> says:
    """For fields of OpenAI's API that are taken only at the value that changes nothing."""
    return says(f"not supported{f'; only {only}' if only else ''}")


Rate = Annotated[
    float,
    Field(ge=1e-100, le=0.1),
    says("a false positive rate is a number from 1e-100 to 0.1: at 0 nothing would ever be found"),
]
NotTaken = Annotated[None, not_supported()]
OnlyFalse = Annotated[Literal[False] | None, NoNumber, not_supported("false")]
OnlyTrue = Annotated[Literal[True] | None, NoNumber, not_supported("true")]
Ignored = Annotated[Any, Field(description="Accepted and not looked at.")]
"""For fields of other services' APIs that can have no effect on the text."""


class StrictModel(BaseModel):
    """A body that is what its schema says: no number stands for a truth value, no string for a number.

    An unknown field is an error: a misspelt option must not be ignored silently.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class AnswerModel(BaseModel):
    """A part of an answer: a later version may add fields, which a client of today leaves out."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class RequestPart(BaseModel):
    """No string stands for a number; a field that is not known is an error, unless it is taken out first."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ClosedPart(RequestPart):
    """A part of our own, out of which nothing is taken: a misspelt field must not be taken for silence."""


class ErrorBody(BaseModel):
    """What went wrong, in OpenAI's terms."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorEnvelope(BaseModel):
    """The error answer of every generation route."""

    error: ErrorBody


class FieldProblem(BaseModel):
    """One field at fault."""

    field: str = Field(description="Dotted path in the request body; empty for the body itself.")
    message: str


class ProblemDocument(BaseModel):
    """The error answer of every detection route (RFC 9457, application/problem+json)."""

    type: str = Field(description="URI that names the kind of error.")
    title: str
    status: int
    detail: str
    instance: str = Field(description="URI that names this occurrence; ends with the request id.")
    code: str
    param: str | None = None
    errors: list[FieldProblem] | None = None
    error: "ErrorBody | None" = Field(
        default=None, description="The same once more, where OpenAI's clients ask: they show its `message`."
    )
