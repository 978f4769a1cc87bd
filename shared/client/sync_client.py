"""A synchronous client of the generation and the detection service."""

import time
from types import TracebackType
from typing import Any, Self

import httpx

from shared.client import calls
from shared.schemas.detection import DetectionKeys, DetectionRequest, DetectionResponse, DirectRequest


class TTMarkClient:
    """Calls one service; waits as long as Retry-After says, `retries` times, before it gives up.

    Args:
        base_url: of the service, without `/v1`.
        token: access token.
        retries: how many more times a request is sent that was answered 429, 502, 503 or 504, or not at all.
        timeout: seconds without a byte before a request fails.
        transport: replaces the network, for tests.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        retries: int = calls.DEFAULT_RETRIES,
        timeout: float = calls.DEFAULT_TIMEOUT,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(
            base_url=base_url, headers=calls.headers(token), timeout=timeout, transport=transport
        )
        self._retries = retries

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.close()

    def detect(self, request: DetectionRequest) -> DetectionResponse:
        """`POST /v1/detect/direct`, `/aligned` or `/localized`, as the request's type says.

        Raises:
            ClientError: the service refused, or did not answer.
        """
        return DetectionResponse.model_validate(
            self._send("POST", calls.detection_path(request), calls.body(request))
        )

    def detect_direct(self, request: DirectRequest) -> DetectionResponse:
        """`POST /v1/detect/direct`.

        Raises:
            ClientError: the service refused, or did not answer.
        """
        return self.detect(request)

    def detection_keys(self) -> DetectionKeys:
        """`GET /v1/keys` of the detection service.

        Raises:
            ClientError: the service refused, or did not answer.
        """
        return DetectionKeys.model_validate(self._send("GET", calls.KEYS_PATH))

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """`POST /v1/completions`, not streamed; for everything else the `openai` client works unchanged.

        Raises:
            ClientError: the service refused, or did not answer.
        """
        return self._send("POST", calls.COMPLETIONS_PATH, body)

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        for attempts_left in range(self._retries, -1, -1):
            try:
                response = self._http.request(method, path, json=body)
            except httpx.HTTPError as error:
                if not isinstance(error, calls.RETRIED_ERRORS) or not attempts_left:
                    raise calls.unreachable(self._http.base_url, error) from error
                time.sleep(calls.backoff(self._retries - attempts_left))
                continue
            if response.is_success:
                result: dict[str, Any] = response.json()
                return result
            if response.status_code not in calls.RETRIED_STATUS or not attempts_left:
                break
            time.sleep(calls.pause(response))
        raise calls.refusal(response)
