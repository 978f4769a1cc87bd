"""How an error looks on the wire: OpenAI envelopes for generation, RFC 9457 problems for detection."""

import math
from collections.abc import Callable, Sequence
from typing import Literal

from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from ttmark.shared.http.request_id import request_id
from ttmark.shared.http.service_errors import BadRequest, ServiceError, Unprocessable
from ttmark.shared.schemas.error_bodies import ErrorBody, ErrorEnvelope, FieldProblem, ProblemDocument

ErrorStyle = Literal["openai", "problem"]
ErrorRenderer = Callable[[ServiceError, Scope], Response]
PROBLEM_MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:ttmark:error:"
INSTANCE_PREFIX = "urn:ttmark:request:"


class InvalidFields(Unprocessable):
    """A body that breaks its schema: every field at fault, each with what is wrong."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        first = problems[0]
        message = f"{first.field}: {first.message}" if first.field else first.message
        super().__init__(message, param=first.field or None)
        self.problems = tuple(problems)

    def as_bad_request(self) -> BadRequest:
        """The same as a 400, which is what OpenAI's clients expect of a bad field."""
        return BadRequest(self.message, param=self.param)


def openai_envelope(error: ServiceError) -> dict[str, object]:
    """`{"error": {"message", "type", "param", "code"}}`."""
    body = ErrorBody(message=error.message, type=error.type, param=error.param, code=error.code)
    return ErrorEnvelope(error=body).model_dump()


def problem_document(error: ServiceError, instance: str) -> dict[str, object]:
    """An RFC 9457 problem; `instance` is the URI of this occurrence."""
    document = ProblemDocument(
        type=TYPE_PREFIX + error.code,
        title=error.title,
        status=error.status,
        detail=error.message,
        instance=instance,
        code=error.code,
        param=error.param,
        errors=list(error.problems) if isinstance(error, InvalidFields) else None,
    )
    return document.model_dump(exclude_none=True)


def error_renderer(style: ErrorStyle) -> ErrorRenderer:
    """The function that answers a request (its ASGI scope) with an error in the service's style.

    It leaves the error's code in the scope's state, for the access log.
    """
    respond = _openai_response if style == "openai" else _problem_response

    def render(error: ServiceError, scope: Scope) -> Response:
        scope["state"]["error_code"] = error.code
        return respond(error, request_id(scope))

    return render


def _openai_response(error: ServiceError, _: str) -> Response:
    if isinstance(error, InvalidFields):
        error = error.as_bad_request()
    return JSONResponse(openai_envelope(error), error.status, headers=_headers(error))


def _problem_response(error: ServiceError, identifier: str) -> Response:
    document = problem_document(error, INSTANCE_PREFIX + identifier)
    return JSONResponse(document, error.status, headers=_headers(error), media_type=PROBLEM_MEDIA_TYPE)


def _headers(error: ServiceError) -> dict[str, str]:
    headers = dict(error.headers)
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    return headers
