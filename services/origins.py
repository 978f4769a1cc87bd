"""Origins of web pages, as a setting."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator
from pydantic_settings import NoDecode

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s]+")


def _split(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _check(origins: tuple[str, ...]) -> tuple[str, ...]:
    for origin in origins:
        # A browser sends neither path nor closing slash: with one the origin would never match.
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise ValueError(f"{origin!r} is not an origin such as https://app.example.org, nor *")
    return origins


Origins = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), AfterValidator(_check)]
