"""When a call is sent again: what both clients do, without doing it.

A POST that may have arrived is not sent again, unless an idempotency key says that it is the same one.
"""

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import httpx

from ttmark.shared.client.calls import Call, refusal
from ttmark.shared.client.errors import AnswerLost, ClientError, ServiceRefused, ServiceUnreachable

Attempt = httpx.Response | httpx.HTTPError
OnWait = Callable[[float, ClientError], None]
"""Is told how many seconds are waited before the next attempt, and why."""

_GATEWAY = frozenset({502, 504})
_BUSY = frozenset({429, 503})
_BROKEN = (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
_LONGEST_PAUSE = 8.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a call goes on; see `Client`."""

    retries: int
    seconds: float
    on_wait: OnWait | None = None


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
    call: Call[Any], base_url: httpx.URL, patience: Patience
) -> Generator[float, Attempt, httpx.Response]:
    """Yields the seconds to wait before each attempt, is sent what came of it, returns the good answer.

    Raises:
        ServiceRefused, ServiceUnreachable: trying again is of no use, must not be, or has lasted too long.
    """
    pause, failures, left, arrived = 0.0, 0, patience.seconds, False
    while True:
        attempt = yield pause
        if isinstance(attempt, httpx.HTTPError):
            failure = _unanswered(call, base_url, attempt)
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
            again = again and failures <= patience.retries
        if not again:
            if arrived and call.method == "POST" and type(error) is ServiceUnreachable:
                error = answer_lost(call, str(error))
            raise error from (attempt if isinstance(attempt, httpx.HTTPError) else None)
        if patience.on_wait is not None:
            patience.on_wait(pause, error)


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


def _unanswered(call: Call[Any], base_url: httpx.URL, failure: httpx.HTTPError) -> _Failure:
    message = f"{base_url} does not answer: {str(failure) or type(failure).__name__}"
    if isinstance(failure, _NOT_SENT):
        return _Failure(ServiceUnreachable(message), isinstance(failure, httpx.ConnectError))
    error = answer_lost(call, message) if call.method == "POST" else ServiceUnreachable(message)
    return _Failure(error, call.repeatable and isinstance(failure, _BROKEN), arrived=True)


def broken_off(call: Call[Any], base_url: httpx.URL, failure: httpx.HTTPError) -> ClientError:
    """The answer has begun and did not end."""
    return _unanswered(call, base_url, failure).error


def answer_lost(call: Call[Any], why: str, status: int | None = None) -> AnswerLost:
    """Says what became of the request, and how it can be sent again."""
    if call.key is None:
        advice = "The request may have arrived, so it was not sent again"
    else:
        advice = f"The request may have arrived; send it again with the idempotency key {call.key!r}"
    return AnswerLost(f"{why}. {advice}.", status, call.key)
