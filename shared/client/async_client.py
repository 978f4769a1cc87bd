"""An asynchronous client of the generation and the detection service."""

import asyncio
from collections.abc import AsyncGenerator, Callable
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


class AsyncClient:
    """`Client` for asyncio: the same arguments, calls and errors.

    Many requests may run at the same time over one client.
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
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(**calls.http_options(base_url, token, timeout), transport=transport)
        self._patience = Patience(retries, patience, on_wait)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def complete(self, request: CompletionRequest | Fields) -> CompletionResponse:
        """`POST /v1/completions`; for everything else the `openai` client works unchanged."""
        return await self._answer(calls.COMPLETE.of(request))

    async def chat(self, request: ChatRequest | Fields) -> ChatResponse:
        """`POST /v1/chat/completions`."""
        return await self._answer(calls.CHAT.of(request))

    async def stream_chat(self, request: ChatRequest | Fields) -> AsyncGenerator[ChatChunk, None]:
        """`POST /v1/chat/completions`, event by event; leaving the loop early ends the generation."""
        call = calls.CHAT_EVENTS.of(request, stream=True)
        response = await self._send(call, stream=True)
        try:
            async for line in response.aiter_lines():
                if (event := parsed_event(call, response, line)) is not None:
                    yield event
        except httpx.HTTPError as error:
            raise broken_off(call, self._http.base_url, error) from error
        finally:
            await response.aclose()

    async def models(self) -> ModelList:
        """`GET /v1/models` of the generation service."""
        return await self._answer(calls.MODELS)

    async def verify(self, request: VerificationRequest | Fields) -> VerificationResponse:
        """`POST /v1/watermark/verify` of the generation service: detection with what the model says."""
        return await self._answer(calls.VERIFY.of(request))

    @overload
    async def detect(self, request: CombinedRequest | str) -> CombinedResponse: ...
    @overload
    async def detect(self, request: DetectionRequest) -> DetectionResponse: ...
    async def detect(self, request: DetectionRequest | str) -> DetectionResponse:
        """`POST /v1/detect`, or its `/direct`, `/aligned`, `/localized` by the type; the first for a text."""
        call: Call[Any] = calls.detect(request)
        response: DetectionResponse = await self._answer(call)
        return response

    async def keys(self) -> DetectionKeys:
        """`GET /v1/keys` of the detection service."""
        return await self._answer(calls.KEYS)

    async def detect_public(self, text: str) -> PublicAnswer:
        """`POST /v1/detect/public`: found, not found or too short, at the deployment's one rate."""
        return await self._answer(calls.PUBLIC.of(PublicQuestion(text=text)))

    async def text_provenance(self) -> TextProvenance:
        """`GET /.well-known/text-provenance.json`: what `detect_public` promises, and its limits."""
        return await self._answer(calls.PROVENANCE)

    async def submit_job(
        self, request: JobRequest | Fields, *, idempotency_key: str | None = None
    ) -> JobStatus:
        """`POST /v1/detect/jobs`: thousands of documents, answered in the background.

        One call makes one job, whatever is lost on the way. Give a key of your own, and the same request with
        the same key makes no other job for 24 hours, after a restart of yours too.
        """
        return await self._answer(calls.submit_job(request).once(idempotency_key))

    async def job(self, job_id: str) -> JobStatus:
        """`GET /v1/detect/jobs/{id}`: how many of a job's documents are answered."""
        return await self._answer(calls.job(job_id))

    async def job_results(self, job_id: str, *, offset: int = 0, limit: int = MOST_RESULTS) -> JobResults:
        """`GET /v1/detect/jobs/{id}/results`, which end before the first document without an answer."""
        return await self._answer(calls.job_results(job_id, offset, limit))

    async def iter_job_results(self, job_id: str, *, offset: int = 0) -> AsyncGenerator[JobResult, None]:
        """All of `job_results` from document `offset` on, asked for page by page as they are read."""
        following: int | None = offset
        while following is not None:
            page = await self.job_results(job_id, offset=following)
            for result in page.results:
                yield result
            following = page.next_offset if page.results else None

    async def wait_for_job(
        self, job_id: str, progress: Callable[[JobStatus], None] | None = None, *, poll_seconds: float = 1.0
    ) -> JobStatus:
        """Asks for the job until it is finished; tells `progress` each time what it was answered."""
        while True:
            status = await self.job(job_id)
            if progress is not None:
                progress(status)
            if status.status == "finished":
                return status
            await asyncio.sleep(poll_seconds)

    async def delete_job(self, job_id: str) -> None:
        """`DELETE /v1/detect/jobs/{id}`: ends a job and forgets all of it."""
        await self._send(calls.delete_job(job_id))

    async def store_case(self, case: str, *, idempotency_key: str | None = None) -> StoredCase:
        """`POST /v1/cases`: has the service keep a case, the string that a result had, for its days.

        One call keeps it once; for the key see `submit_job`.
        """
        return await self._answer(calls.STORE_CASE.of({"case": case}).once(idempotency_key))

    async def stored_case(self, case_id: str) -> CaseText:
        """`GET /v1/cases/{id}`."""
        return await self._answer(calls.stored_case(case_id))

    async def delete_case(self, case_id: str) -> None:
        """`DELETE /v1/cases/{id}`: for the token that stored it."""
        await self._send(calls.delete_case(case_id))

    async def _answer(self, call: Call[Answer]) -> Answer:
        return parsed(call, await self._send(call))

    async def _send(self, call: Call[Answer], *, stream: bool = False) -> httpx.Response:
        tries = attempts(call, self._http.base_url, self._patience)
        next(tries)
        try:
            while True:
                if pause := tries.send(await self._attempt(call, stream=stream)):
                    await asyncio.sleep(pause)
        except StopIteration as answered:
            response: httpx.Response = answered.value
            return response

    async def _attempt(self, call: Call[Answer], *, stream: bool) -> Attempt:
        try:
            request = self._http.build_request(call.method, call.path, json=call.body, headers=call.headers)
            response = await self._http.send(request, stream=stream)
            if not response.is_success:
                await response.aread()
        except httpx.HTTPError as error:
            return error
        return response
