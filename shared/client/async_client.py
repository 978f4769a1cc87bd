"""An asynchronous client of the generation and the detection service."""

import asyncio
from types import TracebackType
from typing import Any, Self

import httpx

from shared.client import calls
from shared.schemas.detection import DetectionKeys, DetectionRequest, DetectionResponse


class AsyncTTMarkClient:
    """`TTMarkClient` for asyncio: the same arguments, the same errors.

    Many requests may run at the same time over one client.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        retries: int = calls.DEFAULT_RETRIES,
        timeout: float = calls.DEFAULT_TIMEOUT,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(
            base_url=base_url, headers=calls.headers(token), timeout=timeout, transport=transport
        )
        self._retries = retries

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def detect(self, request: DetectionRequest) -> DetectionResponse:
        """`POST /v1/detect/direct`, `/aligned` or `/localized`, as the request's type says.

        Raises:
            ClientError: the service refused, or did not answer.
        """
        return DetectionResponse.model_validate(
            await self._send("POST", calls.detection_path(request), calls.body(request))
        )

    async def detection_keys(self) -> DetectionKeys:
        """`GET /v1/keys` of the detection service.

        Raises:
            ClientError: the service refused, or did not answer.
        """
        return DetectionKeys.model_validate(await self._send("GET", calls.KEYS_PATH))

    async def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """`POST /v1/completions`, not streamed.

        Raises:
            ClientError: the service refused, or did not answer.
        """
        return await self._send("POST", calls.COMPLETIONS_PATH, body)

    async def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        for attempts_left in range(self._retries, -1, -1):
            try:
                response = await self._http.request(method, path, json=body)
            except httpx.HTTPError as error:
                if not isinstance(error, calls.RETRIED_ERRORS) or not attempts_left:
                    raise calls.unreachable(self._http.base_url, error) from error
                await asyncio.sleep(calls.backoff(self._retries - attempts_left))
                continue
            if response.is_success:
                result: dict[str, Any] = response.json()
                return result
            if response.status_code not in calls.RETRIED_STATUS or not attempts_left:
                break
            await asyncio.sleep(calls.pause(response))
        raise calls.refusal(response)
