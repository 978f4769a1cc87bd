"""A synchronous client of the generation and the detection service."""

import time
from collections.abc import Callable, Generator
from typing import Any, Self, overload

import httpx

from ttmark.shared.client import calls
from ttmark.shared.client.calls import (
    Answer,
    Attempt,
    Call,
    Fields,
    OnWait,
    Patience,
    attempts,
    broken_off,
    parsed,
    parsed_event,
)
from ttmark.shared.schemas.cases import CaseText, StoredCase
from ttmark.shared.schemas.chat import ChatChunk, ChatRequest, ChatResponse
from ttmark.shared.schemas.completions import CompletionRequest, CompletionResponse
from ttmark.shared.schemas.detection import (
    CombinedRequest,
    CombinedResponse,
    DetectionKeys,
    DetectionRequest,
    DetectionResponse,
)
from ttmark.shared.schemas.jobs import MOST_RESULTS, JobRequest, JobResult, JobResults, JobStatus
from ttmark.shared.schemas.models import ModelList
from ttmark.shared.schemas.public import PublicAnswer, PublicQuestion, TextProvenance
from ttmark.shared.schemas.verification import VerificationRequest, VerificationResponse


class Client:
    """Calls one service; waits as long as Retry-After says, and tries again what did not arrive.

    A POST that may have arrived is sent again only where the service does it once all the same: jobs and
    stored cases. Any other one raises `Client.AnswerLost`.

    A request is an object of the schema, which is checked here, or its fields as a mapping, which the service
    checks. Every call raises `Client.Error` alone: the service refused, did not answer, or answered something
    else.

    Args:
        base_url: of the service, without `/v1`.
        token: access token; None where the public is answered without one.
        retries: how many more times a request is sent that did not arrive or found no service.
        patience: most seconds that a call waits, in all, for a service that names a time; 0: it does not.
        timeout: seconds without a byte before a request fails.
        on_wait: is told the seconds before each wait, and the error that is the reason.
        transport: replaces the network, for tests.
    """

    Error = calls.ClientError
    Refused = calls.ServiceRefused
    Unreachable = calls.ServiceUnreachable
    AnswerLost = calls.AnswerLost
    UnexpectedAnswer = calls.UnexpectedAnswer

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        retries: int = 3,
        patience: float = 90.0,
        timeout: float = 120.0,
        on_wait: OnWait | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(**calls.http_options(base_url, token, timeout), transport=transport)
        self._patience = Patience(retries, patience, on_wait)

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
                if (event := parsed_event(call, response, line)) is not None:
                    yield event
        except httpx.HTTPError as error:
            raise broken_off(call, self._http.base_url, error) from error
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

    def detect_public(self, text: str) -> PublicAnswer:
        """`POST /v1/detect/public`: found, not found or too short, at the deployment's one rate."""
        return self._answer(calls.PUBLIC.of(PublicQuestion(text=text)))

    def text_provenance(self) -> TextProvenance:
        """`GET /.well-known/text-provenance.json`: what `detect_public` promises, and its limits."""
        return self._answer(calls.PROVENANCE)

    def submit_job(self, request: JobRequest | Fields, *, idempotency_key: str | None = None) -> JobStatus:
        """`POST /v1/detect/jobs`: thousands of documents, answered in the background.

        One call makes one job, whatever is lost on the way. Give a key of your own, and the same request with
        the same key makes no other job for 24 hours, after a restart of yours too.
        """
        return self._answer(calls.submit_job(request).once(idempotency_key))

    def job(self, job_id: str) -> JobStatus:
        """`GET /v1/detect/jobs/{id}`: how many of a job's documents are answered."""
        return self._answer(calls.job(job_id))

    def job_results(self, job_id: str, *, offset: int = 0, limit: int = MOST_RESULTS) -> JobResults:
        """`GET /v1/detect/jobs/{id}/results`, which end before the first document without an answer."""
        return self._answer(calls.job_results(job_id, offset, limit))

    def iter_job_results(self, job_id: str, *, offset: int = 0) -> Generator[JobResult, None, None]:
        """All of `job_results` from document `offset` on, asked for page by page as they are read."""
        following: int | None = offset
        while following is not None:
            page = self.job_results(job_id, offset=following)
            yield from page.results
            following = page.next_offset if page.results else None

    def wait_for_job(
        self, job_id: str, progress: Callable[[JobStatus], None] | None = None, *, poll_seconds: float = 1.0
    ) -> JobStatus:
        """Asks for the job until it is finished; tells `progress` each time what it was answered."""
        while True:
            status = self.job(job_id)
            if progress is not None:
                progress(status)
            if status.status == "finished":
                return status
            time.sleep(poll_seconds)

    def delete_job(self, job_id: str) -> None:
        """`DELETE /v1/detect/jobs/{id}`: ends a job and forgets all of it."""
        self._send(calls.delete_job(job_id))

    def store_case(self, case: str, *, idempotency_key: str | None = None) -> StoredCase:
        """`POST /v1/cases`: has the service keep a case, the string that a result had, for its days.

        One call keeps it once; for the key see `submit_job`.
        """
        return self._answer(calls.STORE_CASE.of({"case": case}).once(idempotency_key))

    def stored_case(self, case_id: str) -> CaseText:
        """`GET /v1/cases/{id}`."""
        return self._answer(calls.stored_case(case_id))

    def delete_case(self, case_id: str) -> None:
        """`DELETE /v1/cases/{id}`: for the token that stored it."""
        self._send(calls.delete_case(case_id))

    def _answer(self, call: Call[Answer]) -> Answer:
        return parsed(call, self._send(call))

    def _send(self, call: Call[Answer], *, stream: bool = False) -> httpx.Response:
        tries = attempts(call, self._http.base_url, self._patience)
        next(tries)
        try:
            while True:
                if pause := tries.send(self._attempt(call, stream=stream)):
                    time.sleep(pause)
        except StopIteration as answered:
            response: httpx.Response = answered.value
            return response

    def _attempt(self, call: Call[Answer], *, stream: bool) -> Attempt:
        try:
            request = self._http.build_request(call.method, call.path, json=call.body, headers=call.headers)
            response = self._http.send(request, stream=stream)
            if not response.is_success:
                response.read()
        except httpx.HTTPError as error:
            return error
        return response
