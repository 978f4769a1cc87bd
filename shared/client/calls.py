"""Every call of the two services, without sending it, and what its answer holds."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, overload
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from ttmark.shared.client.errors import ServiceRefused, ServiceUnreachable, UnexpectedAnswer
from ttmark.shared.schemas import detection
from ttmark.shared.schemas.cases import CaseText, StoredCase
from ttmark.shared.schemas.chat import ChatChunk, ChatResponse
from ttmark.shared.schemas.completions import CompletionResponse
from ttmark.shared.schemas.detection_combined import CombinedResponse
from ttmark.shared.schemas.detection_keys import DetectionKeys
from ttmark.shared.schemas.jobs import JobRequest, JobResults, JobStatus
from ttmark.shared.schemas.models import ModelList
from ttmark.shared.schemas.public import PublicAnswer, TextProvenance
from ttmark.shared.schemas.verification import VerificationResponse

Answer = TypeVar("Answer", bound=BaseModel)
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call(Generic[Answer]):
    """One request, and the schema of its answer or of each event of it.

    Attributes:
        key: its idempotency key.
    """

    method: str
    path: str
    answer: type[Answer]
    body: dict[str, Any] | None = None
    key: str | None = None

    @property
    def repeatable(self) -> bool:
        """Whether it does no more when it arrives twice."""
        return self.method != "POST" or self.key is not None

    @property
    def headers(self) -> dict[bytes, bytes]:
        """The key as it is: the service says what is wrong with it."""
        return {} if self.key is None else {b"Idempotency-Key": self.key.encode("utf-8", "replace")}

    def of(self, request: BaseModel | Fields, **more: Any) -> "Call[Answer]":
        """This call, with a request and more fields as its body."""
        if isinstance(request, BaseModel):
            request = request.model_dump(exclude_none=True, by_alias=True)
        return replace(self, body={**request, **more})

    def once(self, key: str | None) -> "Call[Answer]":
        """This call under an idempotency key, a new one if none is given."""
        return replace(self, key=uuid.uuid4().hex if key is None else key)


COMPLETE = Call("POST", "/v1/completions", CompletionResponse)
CHAT = Call("POST", "/v1/chat/completions", ChatResponse)
CHAT_EVENTS = Call("POST", "/v1/chat/completions", ChatChunk)
KEYS = Call("GET", "/v1/keys", DetectionKeys)
MODELS = Call("GET", "/v1/models", ModelList)
_JOBS = "/v1/detect/jobs"
PUBLIC = Call("POST", "/v1/detect/public", PublicAnswer)
PROVENANCE = Call("GET", "/.well-known/text-provenance.json", TextProvenance)
STORE_CASE = Call("POST", "/v1/cases", StoredCase)
VERIFY = Call("POST", "/v1/watermark/verify", VerificationResponse)


@overload
def detect(request: detection.CombinedRequest | str) -> Call[CombinedResponse]: ...
@overload
def detect(request: detection.DetectionRequest) -> Call[detection.DetectionResponse]: ...
def detect(request: detection.DetectionRequest | str) -> Call[Any]:
    """The route that a request belongs to, by its type; a text alone is asked about in one question."""
    match request:
        case str():
            return detect(detection.CombinedRequest(inputs=[detection.Document(text=request)]))
        case detection.CombinedRequest():
            return Call("POST", "/v1/detect", CombinedResponse).of(request)
        case detection.DirectRequest():
            mode = "direct"
        case detection.AlignedRequest():
            mode = "aligned"
        case detection.LocalizedRequest():
            mode = "localized"
        case _:
            raise TypeError(f"no route for {type(request).__name__}")
    return Call("POST", f"/v1/detect/{mode}", detection.DetectionResponse).of(request)


def submit_job(request: JobRequest | Fields) -> Call[JobStatus]:
    """A new job. An option that was not set is not sent: the service refuses those of other modes."""
    fields = request.model_dump(exclude_unset=True) if isinstance(request, JobRequest) else request
    return Call("POST", _JOBS, JobStatus).of(fields)


def job(job_id: str) -> Call[JobStatus]:
    """Where a job is."""
    return Call("GET", _below(_JOBS, job_id), JobStatus)


def job_results(job_id: str, offset: int, limit: int) -> Call[JobResults]:
    """A page of a job's results."""
    path = f"{_below(_JOBS, job_id)}/results?offset={offset:d}&limit={limit:d}"
    return Call("GET", path, JobResults)


def delete_job(job_id: str) -> Call[BaseModel]:
    """Its answer is empty."""
    return Call("DELETE", _below(_JOBS, job_id), BaseModel)


def stored_case(case_id: str) -> Call[CaseText]:
    """A case that the service keeps."""
    return Call("GET", _below(STORE_CASE.path, case_id), CaseText)


def delete_case(case_id: str) -> Call[BaseModel]:
    """Its answer is empty."""
    return Call("DELETE", _below(STORE_CASE.path, case_id), BaseModel)


def _below(path: str, name: str) -> str:
    """Below `path` whatever the name is, be it `..` or empty."""
    return f"{path}/{quote(name, safe='').replace('.', '%2E') or '%20'}"


def http_options(base_url: str, token: str | None, timeout: float) -> dict[str, Any]:
    """What an httpx client of a service is made with.

    Raises:
        ServiceUnreachable: the address is none.
    """
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise ServiceUnreachable(f"{base_url} is no address: {error}") from error
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return {"base_url": url, "headers": headers, "timeout": timeout}


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
