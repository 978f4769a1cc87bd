"""The errors of the detection routes, for the API's description."""

from typing import Any

from shared.schemas.errors import ProblemDocument

_DESCRIPTIONS = {
    400: "The body is not strict JSON",
    401: "No valid access token",
    403: "The token lacks a scope",
    404: "Unknown key",
    408: "The body did not arrive in time",
    413: "Body or document too large",
    415: "The body is not uncompressed JSON",
    422: "A field is at fault; `param` names it",
    429: "A limit of the token is reached; Retry-After says when to try again",
    503: "Not ready",
}
BODY_PROBLEMS = (400, 401, 403, 408, 413, 415, 422, 429, 503)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that answers with these statuses."""
    return {status: {"model": ProblemDocument, "description": _DESCRIPTIONS[status]} for status in statuses}
