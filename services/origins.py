"""Origins of web pages, as a setting."""

import re
from typing import Annotated

from pydantic import AfterValidator

from ttmark.services.settings_values import Separated

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s]+")


def _check(origins: tuple[str, ...]) -> tuple[str, ...]:
    for origin in origins:
        # A browser sends neither path nor closing slash: with one the origin would never match.
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise ValueError("each is an origin such as https://app.example.org, without a path or /, or *")
    return origins


Origins = Annotated[tuple[str, ...], *Separated, AfterValidator(_check)]
