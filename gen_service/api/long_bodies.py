"""What takes as long as a body is long: in threads, a few at a time, so that streams go on meanwhile."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, TypeAdapter, ValidationError

from ttmark.shared.http.request_body import PARSED_BODY

_AT_ONCE = CapacityLimiter(2)  # each has a part of the interpreter's time, as the event loop has

T = TypeVar("T")


async def run_long(_request: Request, _size: int, work: Callable[[], T]) -> T:
    """The result of `work`."""
    return await to_thread.run_sync(work, limiter=_AT_ONCE)


def valid(adapter: TypeAdapter[Any], request: Request) -> Any:
    """The body of a request, which the framework takes as it is.

    Raises:
        RequestValidationError: as the framework says it.
    """
    try:
        return adapter.validate_python(request.scope["state"][PARSED_BODY])
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in problems]) from None


async def written(make: Callable[[], BaseModel], headers: Mapping[str, str] | None = None) -> Response:
    """An answer that may be long: made and written in a thread."""
    content = await to_thread.run_sync(lambda: make().model_dump_json(), limiter=_AT_ONCE)
    return Response(content, headers=headers, media_type="application/json")
