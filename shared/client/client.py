"""A synchronous client of the generation and the detection service."""

import time
from types import TracebackType
from typing import Any, Self

import httpx

from shared.schemas.detection import DetectionKeys, DetectionResponse, DirectRequest

RETRIED_STATUS = frozenset({429, 502, 503, 504})
LONGEST_PAUSE = 30.0


class ClientError(Exception):
    """A service refused a request or could not be reached; the message is its own words.

    Attributes:
        status: HTTP status, None when no answer came.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class TTMarkClient:
    """Calls one service; waits as long as Retry-After says, `retries` times, before it gives up.

    Args:
        base_url: of the service, without `/v1`.
        token: access token.
        retries: how many more times a request is sent that was answered 429, 502, 503 or 504.
        timeout: seconds without a byte before a request fails.
        transport: replaces the network, for tests.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        retries: int = 3,
        timeout: float = 120.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(
            base_url=base_url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=timeout,
            transport=transport,
        )
        self._retries = retries

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.close()

    def detect_direct(self, request: DirectRequest) -> DetectionResponse:
        """`POST /v1/detect/direct`.

        Raises:
            ClientError: the service refused, or did not answer.
        """
        return DetectionResponse.model_validate(
            self._send("POST", "/v1/detect/direct", request.model_dump(exclude_none=True))
        )

    def detection_keys(self) -> DetectionKeys:
        """`GET /v1/keys` of the detection service.

        Raises:
            ClientError: the service refused, or did not answer.
        """
        return DetectionKeys.model_validate(self._send("GET", "/v1/keys"))

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """`POST /v1/completions`, not streamed; for everything else the `openai` client works unchanged.

        Raises:
            ClientError: the service refused, or did not answer.
        """
        return self._send("POST", "/v1/completions", body)

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        for attempts_left in range(self._retries, -1, -1):
            try:
                response = self._http.request(method, path, json=body)
            except httpx.HTTPError as error:
                raise ClientError(f"{self._http.base_url} does not answer: {error}") from error
            if response.is_success:
                result: dict[str, Any] = response.json()
                return result
            if response.status_code not in RETRIED_STATUS or not attempts_left:
                break
            time.sleep(_pause(response))
        raise ClientError(_reason(response), response.status_code)


def _pause(response: httpx.Response) -> float:
    """Seconds to wait before the next attempt: Retry-After, or one."""
    try:
        return min(LONGEST_PAUSE, max(0.0, float(response.headers["Retry-After"])))
    except (KeyError, ValueError):
        return 1.0


def _reason(response: httpx.Response) -> str:
    """The service's own words: an OpenAI envelope or a problem document."""
    try:
        body = response.json()
        return str(body["error"]["message"] if "error" in body else body.get("detail") or body["title"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{response.request.url} answered {response.status_code}"
