"""Field types that several requests share."""

from typing import Annotated, Any

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError

MAX_TOKEN_ID = 2**31 - 1

TokenId = Annotated[int, Field(ge=0, le=MAX_TOKEN_ID)]
# fail_fast: a long list of wrong items must not become a long list of errors.
TokenIds = Annotated[list[TokenId], Field(min_length=1, fail_fast=True)]
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
