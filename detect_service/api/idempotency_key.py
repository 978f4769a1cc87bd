"""The header `Idempotency-Key`: a request that comes again with it is answered as the first time."""

import re
from typing import Any

from fastapi import Request

from ttmark.shared.http.service_errors import BadRequest

HEADER = "Idempotency-Key"
_LONGEST = 255
_PATTERN = rf"[!-~]{{1,{_LONGEST}}}"
DESCRIBED: dict[str, Any] = {
    "parameters": [
        {
            "name": HEADER,
            "in": "header",
            "required": False,
            "schema": {"type": "string", "pattern": f"^{_PATTERN}$"},
            "description": "A text of yours for each new request: for 24 hours the same request with "
            "it gets the first answer again. Another body is a 422.",
        }
    ]
}
"""For a route's `openapi_extra`."""


def idempotency_key(request: Request) -> str | None:
    """The request's key, if it has one.

    Raises:
        BadRequest: it is empty, too long, or not in printable ASCII; or there are two.
    """
    given = request.headers.getlist(HEADER)
    if not given:
        return None
    if len(given) > 1 or re.fullmatch(_PATTERN, given[0]) is None:
        raise BadRequest(
            f"{HEADER}: send one key of 1 to {_LONGEST} printable ASCII characters without spaces.",
            param=HEADER,
        )
    return given[0]
