"""What a service's answer holds: a schema's object, an event of a stream, or a refusal."""

import httpx
from pydantic import ValidationError

from ttmark.shared.client.calls import Answer, Call
from ttmark.shared.client.errors import ServiceRefused, UnexpectedAnswer


def parsed(call: Call[Answer], response: httpx.Response) -> Answer:
    """The typed answer; fields that this client does not know are left out.

    Raises:
        UnexpectedAnswer: not JSON, or a field is missing or of another type.
    """
    return _valid(call, response, response.content)


def parsed_event(call: Call[Answer], response: httpx.Response, line: str) -> Answer | None:
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


def _valid(call: Call[Answer], response: httpx.Response, content: bytes) -> Answer:
    try:
        return call.answer.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = f"{where}: {first['msg']}" if where else first["msg"]
        message = f"{response.request.url} answered what no TTMark service answers: {reason}"
        raise UnexpectedAnswer(message, response.status_code) from error


def refusal(response: httpx.Response) -> ServiceRefused:
    """The service's own words: an OpenAI envelope or a problem document."""
    message, code, param = f"{response.request.url} answered {response.status_code}", None, None
    try:
        document = response.json()
        error = document.get("error", document)
        message = str(error.get("message") or error.get("detail") or error["title"])
        code, param = (
            value if isinstance(value := error.get(name), str) else None for name in ("code", "param")
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return ServiceRefused(message, response.status_code, code, param, _retry_after(response))


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds; a date, which no TTMark service sends, is passed over."""
    given = response.headers.get("Retry-After", "")
    return float(given) if given.isdecimal() else None
