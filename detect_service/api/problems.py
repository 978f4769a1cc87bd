"""What the detection routes share: who asks, ids in paths, and errors for the API's description."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path

from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.auth import require
from ttmark.shared.http.service_errors import PROBLEM_MEDIA_TYPE
from ttmark.shared.schemas.fields import ProblemDocument

Caller = Annotated[Principal, Depends(require(Scope.DETECT))]
Identifier = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]
_DESCRIPTIONS = {
    400: "The body is neither strict JSON nor, where a file is sent, a form",
    401: "No valid access token",
    403: "The token lacks a scope",
    404: "Unknown key or job",
    408: "The body did not arrive in time",
    409: "The first request with this idempotency key is being answered, or what it made is gone",
    413: "Body or document too large",
    415: "The body is compressed, or of another media type",
    422: "A field is at fault; `param` names it",
    429: "A limit of the token is reached; Retry-After says when to try again",
    503: "Not ready",
}
KEPT_PROBLEMS = (401, 403, 404, 422, 429, 503)
"""Of a route without a body about something that is kept."""
BODY_PROBLEMS = (400, 401, 403, 408, 413, 415, 422, 429, 503)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ProblemDocument, "description": _DESCRIPTIONS[status]} for status in statuses}


def describe_problems(app: FastAPI) -> None:
    """Gives problem documents their media type in the API's description, where the framework says JSON."""
    describe: Callable[[], dict[str, Any]] = app.openapi

    def openapi() -> dict[str, Any]:
        description = describe()
        for operations in description["paths"].values():
            for operation in operations.values():
                for response in operation["responses"].values():
                    content = response.get("content", {})
                    reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
                    if reference.endswith(f"/{ProblemDocument.__name__}"):
                        content[PROBLEM_MEDIA_TYPE] = content.pop("application/json")
        return description

    app.openapi = openapi  # type: ignore[method-assign]
