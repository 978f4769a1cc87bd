"""What the synchronous and the asynchronous client have in common: routes, retries, error texts."""

import random
from typing import Any

import httpx

from shared.client.errors import ClientError
from shared.schemas.detection import (
    AlignedRequest,
    DetectionRequest,
    DirectRequest,
    LocalizedRequest,
)

RETRIED_STATUS = frozenset({429, 502, 503, 504})
# The connection was refused or broke before an answer: another instance, or the next one, will answer.
RETRIED_ERRORS = (httpx.ConnectError, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
LONGEST_PAUSE = 30.0
DEFAULT_TIMEOUT = 120.0
DEFAULT_RETRIES = 3

KEYS_PATH = "/v1/keys"
COMPLETIONS_PATH = "/v1/completions"


def detection_path(request: DetectionRequest) -> str:
    """The route that a request belongs to, by its type."""
    match request:
        case DirectRequest():
            return "/v1/detect/direct"
        case AlignedRequest():
            return "/v1/detect/aligned"
        case LocalizedRequest():
            return "/v1/detect/localized"
        case _:
            raise TypeError(f"no route for {type(request).__name__}")


def headers(token: str) -> dict[str, str]:
    """Headers of every request."""
    return {"Authorization": f"Bearer {token}"}


def body(request: DetectionRequest) -> dict[str, Any]:
    """The JSON body of a detection request."""
    return request.model_dump(exclude_none=True)


def pause(response: httpx.Response) -> float:
    """Seconds to wait before the next attempt: Retry-After, or one."""
    try:
        return min(LONGEST_PAUSE, max(0.0, float(response.headers["Retry-After"])))
    except (KeyError, ValueError):
        return 1.0


def backoff(failures: int) -> float:
    """Seconds to wait after a connection failed, as it did `failures` times before: at most 8, randomised."""
    return min(8.0, 0.5 * (1 << failures)) * random.uniform(0.5, 1.0)  # noqa: S311


def refusal(response: httpx.Response) -> ClientError:
    """The service's own words: an OpenAI envelope or a problem document."""
    try:
        document = response.json()
        reason = document["error"]["message"] if "error" in document else document.get("detail")
        message = str(reason or document["title"])
    except (ValueError, KeyError, TypeError, AttributeError):
        message = f"{response.request.url} answered {response.status_code}"
    return ClientError(message, response.status_code)


def unreachable(base_url: httpx.URL, error: httpx.HTTPError) -> ClientError:
    """No answer came."""
    return ClientError(f"{base_url} does not answer: {error}")
