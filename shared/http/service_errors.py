"""Every error that a client can see, with its status, code, OpenAI type and title stated once."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Literal

from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from ttmark.shared.http.request_id import request_id
from ttmark.shared.schemas.fields import ErrorBody, ErrorEnvelope, FieldProblem, ProblemDocument

INVALID_REQUEST = "invalid_request_error"
SERVER_ERROR = "server_error"


class ServiceError(Exception):
    """An error with a documented answer; `message` is shown to the client as it is.

    Args:
        message: one or two sentences for the client; no secrets, no input beyond field names and numbers.
        param: the request field at fault, as a dotted path.
        retry_after: seconds after which another try makes sense (the Retry-After header).
        headers: further response headers.
    """

    status: ClassVar[int]
    code: ClassVar[str]
    type: ClassVar[str] = INVALID_REQUEST
    title: ClassVar[str]

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after = retry_after
        self.headers = dict(headers or {})


class BadRequest(ServiceError):
    status, code, title = 400, "invalid_request", "Bad request"


class MalformedJson(BadRequest):
    code, title = "malformed_json", "The body is not valid JSON"


class TooManyParts(MalformedJson):
    status, code, title = 413, "request_too_large", "Content too large"

    def __init__(self, what: str, most: int) -> None:
        elsewhere = (
            " Send fewer; for detection there are jobs (`ttmark jobs submit`) and bulk files "
            "(`ttmark detect --bulk`)."
        )
        is_a_list = most >= 10  # a question of the public has a handful at most
        super().__init__(f"The JSON holds more {what} than the limit of {most}.{elsewhere * is_a_list}")


class MalformedForm(BadRequest):
    code, title = "malformed_form", "The body is not a form with a file"


class UnsupportedFeature(BadRequest):
    code, title = "unsupported_feature", "Unsupported feature"


class ContextLengthExceeded(BadRequest):
    code, title = "context_length_exceeded", "Context length exceeded"


class Unauthorized(ServiceError):
    status, code, title = 401, "invalid_api_key", "Unauthorized"
    type = "authentication_error"


class Forbidden(ServiceError):
    status, code, title = 403, "insufficient_scope", "Forbidden"
    type = "permission_error"


class PolicyDenied(Forbidden):
    """A rule of the deployment forbids it.

    Args:
        reason: why the text would be unmarked.
    """

    code = "policy_denied"

    def __init__(self, message: str, *, rule: str, reason: str) -> None:
        super().__init__(message)
        self.rule = rule
        self.reason = reason


class NotFound(ServiceError):
    status, code, title = 404, "not_found", "Not found"


class KeyNotFound(NotFound):
    code, title = "key_not_found", "Unknown watermark key"


class ModelNotFound(NotFound):
    code, title = "model_not_found", "Unknown model"


class MethodNotAllowed(ServiceError):
    status, code, title = 405, "method_not_allowed", "Method not allowed"


class RequestTimeout(ServiceError):
    status, code, title = 408, "request_timeout", "Request timeout"


class Conflict(ServiceError):
    status, code, title = 409, "conflict", "Conflict"


class RequestInProgress(Conflict):
    code, title = "request_in_progress", "The request is being answered"


class AlreadyGone(Conflict):
    code, title = "already_gone", "What the request made is gone"


class TooLarge(ServiceError):
    status, code, title = 413, "request_too_large", "Content too large"


class TooMuchWork(TooLarge):
    code, title = "too_much_work", "Too much work for one request"


class UnsupportedMediaType(ServiceError):
    status, code, title = 415, "unsupported_media_type", "Unsupported media type"


class Unprocessable(ServiceError):
    status, code, title = 422, "invalid_field", "Unprocessable content"


class IdempotencyKeyReused(Unprocessable):
    code, title = "idempotency_key_reused", "The idempotency key belongs to another request"


class TooManyRequests(ServiceError):
    status, code, title = 429, "rate_limit_exceeded", "Too many requests"
    type = "rate_limit_error"


class InternalError(ServiceError):
    status, code, title = 500, "internal_error", "Internal error"
    type = SERVER_ERROR


class Unavailable(ServiceError):
    status, code, title = 503, "unavailable", "Service unavailable"
    type = SERVER_ERROR


class NotReady(Unavailable):
    code, title = "not_ready", "Not ready"


class ShuttingDown(Unavailable):
    code, title = "shutting_down", "Shutting down"


class NoUsableKey(Unavailable):
    code, title = "no_usable_key", "No usable watermark key"


class StoreDown(Unavailable):
    code, title = "store_unavailable", "Key store unavailable"


ErrorStyle = Literal["openai", "problem"]
ErrorRenderer = Callable[[ServiceError, Scope], Response]
PROBLEM_MEDIA_TYPE = "application/problem+json"
OPENAI_CALL = "/v1/content_provenance_checks"
"""Of detection's routes the one that clients of OpenAI call, who read no problem documents."""
TYPE_PREFIX = "urn:ttmark:error:"
INSTANCE_PREFIX = "urn:ttmark:request:"


class InvalidFields(Unprocessable):
    """A body that breaks its schema: every field at fault, each with what is wrong."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        first = problems[0]
        message = f"{first.field}: {first.message}" if first.field else first.message
        super().__init__(message, param=first.field or None)
        self.problems = tuple(problems)


def openai_envelope(error: ServiceError) -> dict[str, object]:
    """`{"error": {"message", "type", "param", "code"}}`."""
    return ErrorEnvelope(error=_error_body(error)).model_dump()


def _error_body(error: ServiceError) -> ErrorBody:
    return ErrorBody(message=error.message, type=error.type, param=error.param, code=error.code)


def problem_document(error: ServiceError, instance: str, *, for_openai: bool = False) -> dict[str, object]:
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
        error=_error_body(error) if for_openai else None,
    )
    return document.model_dump(exclude_none=True)


def error_renderer(style: ErrorStyle) -> ErrorRenderer:
    """The function that answers a request (its ASGI scope) with an error in the service's style.

    It leaves the error's code in the scope's state, for the access log.
    """

    def render(error: ServiceError, scope: Scope) -> Response:
        scope["state"]["error_code"] = error.code
        if style == "problem":
            instance, for_openai = INSTANCE_PREFIX + request_id(scope), scope["path"] == OPENAI_CALL
            document = problem_document(error, instance, for_openai=for_openai)
            return _AnyText(document, error.status, headers=_headers(error), media_type=PROBLEM_MEDIA_TYPE)
        if isinstance(error, InvalidFields):  # a 400 is what OpenAI's clients expect of a bad field
            error = BadRequest(error.message, param=error.param)
        return _AnyText(openai_envelope(error), error.status, headers=_headers(error))

    return render


class _AnyText(JSONResponse):
    """JSON that may quote a stranger: a lone surrogate, which has no form in UTF-8, stays an escape."""

    def render(self, content: object) -> bytes:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode(
            errors="backslashreplace"
        )


def _headers(error: ServiceError) -> dict[str, str]:
    headers = dict(error.headers)
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    return headers
