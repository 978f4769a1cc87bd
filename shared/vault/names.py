"""Names that people give: of keys and of tenants."""

from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from ttmark.shared.vault.stores.key_store_errors import InvalidName

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]

_NAME: TypeAdapter[str] = TypeAdapter(Name)


def check_name(what: str, name: str) -> str:
    """The name, if it is 1 to 63 of a-z 0-9 . _ - and begins with a letter or digit.

    Raises:
        InvalidName: it is not.
    """
    try:
        return _NAME.validate_python(name)
    except ValidationError as error:
        raise InvalidName(
            f"{what} {name!r}: use 1 to 63 of a-z 0-9 . _ - and begin with a letter or digit"
        ) from error
