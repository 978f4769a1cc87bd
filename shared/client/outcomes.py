"""What comes of a call, for both clients: its answer, an error, or another attempt. Nothing is sent here.

ClientError
├── ServiceRefused: the service answered with an error
├── ServiceUnreachable: no answer came
│   └── AnswerLost: and the service may have done what it was asked for
└── UnexpectedAnswer: an answer came that is not what the service's description says

A POST that may have arrived is not sent again, unless an idempotency key says that it is the same one.
"""

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import httpx
import orjson
from pydantic import ValidationError

from ttmark.shared.client.calls import AnyAnswer, Call
from ttmark.shared.outgoing import AnswerNotRead, NotSent


class ClientError(Exception):
    """A call of a service failed; the message is one line for a person to read.

    Attributes:
        status: HTTP status, None when no answer came.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ServiceRefused(ClientError):
    """The service answered with an error; the message is its own words.

    Attributes:
        code: the service's name for the error, such as `key_not_found`; None where the answer has none.
        param: the field of the request at fault, such as `inputs[3].text`; None where the answer names none.
        retry_after: seconds after which the service may be asked again; None where it names no time.
    """

    def __init__(
        self,
        message: str,
        status: int,
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, status)
        self.code = code
        self.param = param
        self.retry_after = retry_after


class ServiceUnreachable(ClientError):
    """No answer came: a wrong address, a service that is away, or a connection that broke."""


class AnswerLost(ServiceUnreachable):
    """A POST may have arrived, and its answer has not: what it asks for may be done, charged, or neither.

    Attributes:
        idempotency_key: under which the same request can be sent again and is done once; None where the call
            has none.
    """

    def __init__(self, message: str, status: int | None, idempotency_key: str | None) -> None:
        super().__init__(message, status)
        self.idempotency_key = idempotency_key


class UnexpectedAnswer(ClientError):
    """The answer is not JSON or lacks a field: something else answers there, or a service of another age."""


_LONGEST_WORDS, _DIGITS = 2_000, 10
"""Of what a service says in an error, and of a time that it names."""


def parsed(call: Call[AnyAnswer], response: httpx.Response) -> AnyAnswer:
    """The typed answer; fields that this client does not know are left out.

    Raises:
        UnexpectedAnswer: not JSON, or a field is missing or of another type.
    """
    return _valid(call, response, response.content)


def parsed_event(call: Call[AnyAnswer], response: httpx.Response, line: str) -> AnyAnswer | None:
    """The event that a line of a stream holds, if it holds one.

    Raises:
        ServiceRefused: the service says that it cannot go on.
        UnexpectedAnswer: as `parsed`.
    """
    if not line.startswith("data: ") or line == "data: [DONE]":
        return None
    data = line.removeprefix("data: ").encode()
    if data.startswith(b'{"error"'):
        raise refusal(httpx.Response(response.status_code, content=data, request=response.request))
    return _valid(call, response, data)


def _valid(call: Call[AnyAnswer], response: httpx.Response, content: bytes) -> AnyAnswer:
    try:
        return call.answer.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = f"{where}: {first['msg']}" if where else first["msg"]
        said = f"{response.request.url} answered what no TTMark service answers: {reason}"
        message = said[:_LONGEST_WORDS]
        raise UnexpectedAnswer(message, response.status_code) from error


def refusal(response: httpx.Response) -> ServiceRefused:
    """The service's own words: an OpenAI envelope or a problem document."""
    message, code, param = f"{response.request.url} answered {response.status_code}", None, None
    try:
        document = orjson.loads(response.content)  # of any depth
        error = document.get("error", document)
        message = str(error.get("message") or error.get("detail") or error["title"])[:_LONGEST_WORDS]
        code, param = (
            value if isinstance(value := error.get(name), str) else None for name in ("code", "param")
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    given = response.headers.get("Retry-After", "")  # a date, which no TTMark service sends, is passed over
    retry_after = float(given) if given.isdecimal() and len(given) < _DIGITS else None
    return ServiceRefused(message, response.status_code, code, param, retry_after)


Attempt = httpx.Response | httpx.HTTPError
OnWait = Callable[[float, ClientError], None]
"""Is told how many seconds are waited before the next attempt, and why."""

_GATEWAY = frozenset({502, 504})
_BUSY = frozenset({429, 503})
_BROKEN = (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)
_LONGEST_PAUSE = 8.0


@dataclass(frozen=True, slots=True)
class _Failure:
    """What came of an attempt.

    Attributes:
        again: the call may be sent again.
        arrived: perhaps the service has done what it asks for.
    """

    error: ClientError
    again: bool
    arrived: bool = False


def attempts(
    call: Call[Any], base_url: httpx.URL, retries: int, patience: float, on_wait: OnWait | None
) -> Generator[float, Attempt, httpx.Response]:
    """Yields the seconds to wait before each attempt, is sent what came of it, returns the good answer.

    `Client` says what the arguments are.

    Raises:
        ServiceRefused, ServiceUnreachable: trying again is of no use, must not be, or has lasted too long.
    """
    pause, failures, left, arrived = 0.0, 0, patience, False
    while True:
        attempt = yield pause
        if isinstance(attempt, httpx.HTTPError):
            failure = unanswered(call, base_url, attempt)
        elif attempt.is_success or (arrived and call.method == "DELETE" and attempt.status_code == 404):
            return attempt
        else:
            failure = _answered(call, attempt)
        error, again, arrived = failure.error, failure.again, arrived or failure.arrived
        if isinstance(error, ServiceRefused) and error.retry_after is not None:
            pause = max(1.0, error.retry_after)
            left -= pause
            again = again and left >= 0
        else:
            pause = min(_LONGEST_PAUSE, 0.5 * 2**failures) * random.uniform(0.5, 1.0)  # noqa: S311
            failures += 1
            again = again and failures <= retries
        if not again:
            if arrived and call.method == "POST" and type(error) is ServiceUnreachable:
                error = answer_lost(call, str(error))
            raise error from (attempt if isinstance(attempt, httpx.HTTPError) else None)
        if on_wait is not None:
            on_wait(pause, error)


def _answered(call: Call[Any], response: httpx.Response) -> _Failure:
    error, status = refusal(response), response.status_code
    if status in _GATEWAY and call.method == "POST":
        return _Failure(answer_lost(call, str(error), status), call.repeatable, arrived=True)
    if status in _BUSY:
        # A service that names a time has refused the request; else a gateway may have lost the answer.
        return _Failure(error, call.repeatable or error.retry_after is not None)
    if status in _GATEWAY:
        return _Failure(error, again=True, arrived=True)
    return _Failure(error, error.code == "request_in_progress")


def unanswered(call: Call[Any], base_url: httpx.URL, failure: httpx.HTTPError) -> _Failure:
    if isinstance(failure, NotSent):
        return _Failure(ServiceUnreachable(str(failure)), again=False)
    if isinstance(failure, AnswerNotRead):
        return _Failure(UnexpectedAnswer(f"{base_url}: {failure}"), again=False)
    message = f"{base_url} does not answer: {str(failure) or type(failure).__name__}"
    if isinstance(failure, _NOT_SENT):
        return _Failure(ServiceUnreachable(message), isinstance(failure, httpx.ConnectError))
    error = answer_lost(call, message) if call.method == "POST" else ServiceUnreachable(message)
    return _Failure(error, call.repeatable and isinstance(failure, _BROKEN), arrived=True)


def answer_lost(call: Call[Any], why: str, status: int | None = None) -> AnswerLost:
    """Says what became of the request, and how it can be sent again."""
    if call.key is None:
        advice = "The request may have arrived, so it was not sent again"
    else:
        advice = f"The request may have arrived; send it again with the idempotency key {call.key!r}"
    return AnswerLost(f"{why}. {advice}.", status, call.key)
