"""Field types that several requests share."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError

MAX_TOKEN_ID = 2**31 - 1


def _integral(value: object) -> object:
    """To JSON Schema 2.0 is an integer, and some clients write integers so."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _integral_items(value: object) -> object:
    if isinstance(value, list) and any(type(item) is float for item in value):
        return [_integral(item) for item in value]
    return value


def _no_truth_value(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must not be true or false")
    return value


def _no_number(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError("must not be a number")
    return value


WholeNumber = BeforeValidator(_integral)
WholeNumbers = BeforeValidator(_integral_items)
NoTruthValue = BeforeValidator(_no_truth_value)  # a literal 0 would take false for itself
NoNumber = BeforeValidator(_no_number)  # and a literal false would take 0
TokenId = Annotated[int, Field(ge=0, le=MAX_TOKEN_ID)]
# fail_fast: a long list of wrong items must not become a long list of errors. The list as a whole is looked
# through for whole floats, because a validator for each of a million tokens takes seconds.
TokenIds = Annotated[list[TokenId], Field(min_length=1, fail_fast=True), WholeNumbers]
NonEmptyText = Annotated[str, Field(min_length=1)]


def is_none(value: object) -> bool:
    """For `exclude_if`: response fields that are left out where they do not apply, instead of being null."""
    return value is None


def says(message: str) -> WrapValidator:
    """Replaces whatever pydantic would say about a value with one message on the field itself."""

    def validate(value: Any, inner: ValidatorFunctionWrapHandler) -> Any:
        try:
            return inner(value)
        except ValidationError:
            raise PydanticCustomError("invalid", "{text}", {"text": message}) from None

    return WrapValidator(validate)


def not_supported(only: str = "") -> WrapValidator:
    """For fields of OpenAI's API that are taken only at the value that changes nothing."""
    return says(f"not supported{f'; only {only}' if only else ''}")


NotTaken = Annotated[None, not_supported()]
OnlyFalse = Annotated[Literal[False] | None, NoNumber, not_supported("false")]
OnlyTrue = Annotated[Literal[True] | None, NoNumber, not_supported("true")]
Ignored = Annotated[Any, Field(description="Accepted and not looked at.")]
"""For fields of other services' APIs that can have no effect on the text."""
