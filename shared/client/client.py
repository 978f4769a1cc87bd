"""A synchronous client of the generation and the detection service."""

import time
from collections.abc import Generator
from typing import Any, Self, overload

import httpx

from ttmark.shared.client import calls, errors
from ttmark.shared.client.calls import Answer, Call, Fields
from ttmark.shared.schemas.cases import CaseText, StoredCase
from ttmark.shared.schemas.chat import ChatChunk, ChatRequest, ChatResponse
from ttmark.shared.schemas.completions import CompletionRequest, CompletionResponse
from ttmark.shared.schemas.detection import CombinedRequest, DetectionRequest, DetectionResponse
from ttmark.shared.schemas.detection_combined import CombinedResponse
from ttmark.shared.schemas.detection_keys import DetectionKeys
from ttmark.shared.schemas.jobs import MOST_RESULTS, JobRequest, JobResults, JobStatus
from ttmark.shared.schemas.models import ModelList
from ttmark.shared.schemas.verification import VerificationRequest, VerificationResponse


class Client:
    """Calls one service; waits as long as Retry-After says, `retries` times, before it gives up.

    A request is an object of the schema, which is checked here, or its fields as a mapping, which the service
    checks. Every call raises `Client.Error` alone: the service refused, did not answer, or answered something
    else.

    Args:
        base_url: of the service, without `/v1`.
        token: access token.
        retries: how many more times a request is sent that was answered 429, 502, 503 or 504, or not at all.
        timeout: seconds without a byte before a request fails.
        transport: replaces the network, for tests.
    """

    Error = errors.ClientError
    Refused = errors.ServiceRefused
    Unreachable = errors.ServiceUnreachable
    UnexpectedAnswer = errors.UnexpectedAnswer

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        retries: int = calls.DEFAULT_RETRIES,
        timeout: float = calls.DEFAULT_TIMEOUT,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(**calls.http_options(base_url, token, timeout), transport=transport)
        self._retries = retries

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def complete(self, request: CompletionRequest | Fields) -> CompletionResponse:
        """`POST /v1/completions`; for everything else the `openai` client works unchanged."""
        return self._answer(calls.COMPLETE.of(request))

    def chat(self, request: ChatRequest | Fields) -> ChatResponse:
        """`POST /v1/chat/completions`."""
        return self._answer(calls.CHAT.of(request))

    def stream_chat(self, request: ChatRequest | Fields) -> Generator[ChatChunk, None, None]:
        """`POST /v1/chat/completions`, event by event; leaving the loop early ends the generation."""
        call = calls.CHAT_EVENTS.of(request, stream=True)
        response = self._send(call, stream=True)
        try:
            for line in response.iter_lines():
                if (event := calls.parsed_event(call, response, line)) is not None:
                    yield event
        except httpx.HTTPError as error:
            raise calls.unreachable(self._http.base_url, error) from error
        finally:
            response.close()

    def models(self) -> ModelList:
        """`GET /v1/models` of the generation service."""
        return self._answer(calls.MODELS)

    def verify(self, request: VerificationRequest | Fields) -> VerificationResponse:
        """`POST /v1/watermark/verify` of the generation service: detection with what the model says."""
        return self._answer(calls.VERIFY.of(request))

    @overload
    def detect(self, request: CombinedRequest | str) -> CombinedResponse: ...
    @overload
    def detect(self, request: DetectionRequest) -> DetectionResponse: ...
    def detect(self, request: DetectionRequest | str) -> DetectionResponse:
        """`POST /v1/detect`, or its `/direct`, `/aligned`, `/localized` by the type; the first for a text."""
        call: Call[Any] = calls.detect(request)
        response: DetectionResponse = self._answer(call)
        return response

    def keys(self) -> DetectionKeys:
        """`GET /v1/keys` of the detection service."""
        return self._answer(calls.KEYS)

    def submit_job(self, request: JobRequest | Fields) -> JobStatus:
        """`POST /v1/detect/jobs`: thousands of documents, answered in the background."""
        return self._answer(calls.submit_job(request))

    def job(self, job_id: str) -> JobStatus:
        """`GET /v1/detect/jobs/{id}`: how many of a job's documents are answered."""
        return self._answer(calls.job(job_id))

    def job_results(self, job_id: str, *, offset: int = 0, limit: int = MOST_RESULTS) -> JobResults:
        """`GET /v1/detect/jobs/{id}/results`, which end before the first document without an answer."""
        return self._answer(calls.job_results(job_id, offset, limit))

    def delete_job(self, job_id: str) -> None:
        """`DELETE /v1/detect/jobs/{id}`: ends a job and forgets all of it."""
        self._send(calls.delete_job(job_id))

    def store_case(self, case: str) -> StoredCase:
        """`POST /v1/cases`: has the service keep a case, the string that a result had, for its days."""
        return self._answer(calls.STORE_CASE.of({"case": case}))

    def stored_case(self, case_id: str) -> CaseText:
        """`GET /v1/cases/{id}`."""
        return self._answer(calls.stored_case(case_id))

    def delete_case(self, case_id: str) -> None:
        """`DELETE /v1/cases/{id}`: for the token that stored it."""
        self._send(calls.delete_case(case_id))

    def _answer(self, call: Call[Answer]) -> Answer:
        return calls.parsed(call, self._send(call))

    def _send(self, call: Call[Answer], *, stream: bool = False) -> httpx.Response:
        attempts = calls.attempts(self._http.base_url, self._retries)
        next(attempts)
        try:
            while True:
                if pause := attempts.send(self._attempt(call, stream=stream)):
                    time.sleep(pause)
        except StopIteration as answered:
            response: httpx.Response = answered.value
            return response

    def _attempt(self, call: Call[Answer], *, stream: bool) -> calls.Attempt:
        try:
            request = self._http.build_request(call.method, call.path, json=call.body)
            response = self._http.send(request, stream=stream)
            if not response.is_success:
                response.read()
        except httpx.HTTPError as error:
            return error
        return response
