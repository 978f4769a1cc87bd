"""Every call of the two services, without sending it, and what its answer holds."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, overload
from urllib.parse import quote

import orjson
from pydantic import BaseModel

from ttmark.shared.schemas.detection import detect as detection
from ttmark.shared.schemas.detection.content_provenance import ContentProvenanceCheck
from ttmark.shared.schemas.detection.detect import CombinedResponse
from ttmark.shared.schemas.detection.detection_keys import DetectionKeys
from ttmark.shared.schemas.detection.jobs import MOST_RESULTS, JobRequest, JobResults, JobStatus
from ttmark.shared.schemas.detection.public import PublicAnswer, PublicQuestion, TextProvenance
from ttmark.shared.schemas.generation.chat import ChatChunk, ChatRequest, ChatResponse
from ttmark.shared.schemas.generation.completions import CompletionRequest, CompletionResponse
from ttmark.shared.schemas.generation.models import ModelList
from ttmark.shared.signpost import DOCUMENT_PATH

AnyAnswer = TypeVar("AnyAnswer", bound=BaseModel)
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call(Generic[AnyAnswer]):
    """One request, and the schema of its answer or of each event of it.

    Attributes:
        files: fields of a form in place of a body in JSON, each with a file's name where it is one.
        key: its idempotency key.
    """

    method: str
    path: str
    answer: type[AnyAnswer]
    body: dict[str, Any] | None = None
    files: Mapping[str, tuple[str | None, bytes]] | None = None
    key: str | None = None

    @property
    def repeatable(self) -> bool:
        """Whether it does no more when it arrives twice."""
        return self.method != "POST" or self.key is not None

    @property
    def headers(self) -> dict[bytes, bytes]:
        """The key as it is: the service says what is wrong with it."""
        return {} if self.key is None else {b"Idempotency-Key": self.key.encode("utf-8", "replace")}

    def of(self, request: BaseModel | Fields, **more: Any) -> "Call[AnyAnswer]":
        """This call, with a request and more fields as its body."""
        if isinstance(request, BaseModel):
            request = request.model_dump(exclude_none=True, by_alias=True)
        return replace(self, body={**request, **more})

    def once(self, key: str | None) -> "Call[AnyAnswer]":
        """This call under an idempotency key, a new one if none is given."""
        return replace(self, key=uuid.uuid4().hex if key is None else key)


_CHAT = "/v1/chat/completions"
_JOBS = "/v1/detect/jobs"


def complete(request: CompletionRequest | Fields) -> Call[CompletionResponse]:
    """`POST /v1/completions`; for everything else the `openai` client works unchanged."""
    return Call("POST", "/v1/completions", CompletionResponse).of(request)


def chat(request: ChatRequest | Fields) -> Call[ChatResponse]:
    """`POST /v1/chat/completions`."""
    return Call("POST", _CHAT, ChatResponse).of(request)


def chat_events(request: ChatRequest | Fields) -> Call[ChatChunk]:
    """The same, answered in events."""
    return Call("POST", _CHAT, ChatChunk).of(request, stream=True)


def models() -> Call[ModelList]:
    """`GET /v1/models` of the generation service."""
    return Call("GET", "/v1/models", ModelList)


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


def check_content(
    content: bytes, filename: str, request: detection.DetectionRequest | None = None
) -> Call[ContentProvenanceCheck]:
    """`POST /v1/content_provenance_checks`: a file is asked about.

    Args:
        request: what is asked of each text of the file; its own documents are left out.
    """
    form: dict[str, tuple[str | None, bytes]] = {"file": (filename, content)}
    if request is not None:
        fields = request.model_dump(exclude_none=True, exclude={"inputs", "conversation"}, by_alias=True)
        form["question"] = None, orjson.dumps({"mode": request.mode, **fields})
    return Call("POST", "/v1/content_provenance_checks", ContentProvenanceCheck, files=form)


def keys() -> Call[DetectionKeys]:
    """`GET /v1/keys` of the detection service."""
    return Call("GET", "/v1/keys", DetectionKeys)


def detect_public(text: str) -> Call[PublicAnswer]:
    """`POST /v1/detect/public`: found, not found or too short, at the deployment's one rate."""
    return Call("POST", "/v1/detect/public", PublicAnswer).of(PublicQuestion(text=text))


def text_provenance() -> Call[TextProvenance]:
    """`GET /.well-known/text-provenance.json`: what `detect_public` promises, and its limits."""
    return Call("GET", DOCUMENT_PATH, TextProvenance)


def submit_job(request: JobRequest | Fields, *, idempotency_key: str | None = None) -> Call[JobStatus]:
    """`POST /v1/detect/jobs`: thousands of documents, answered in the background.

    One call makes one job, whatever is lost on the way. Give a key of your own, and the same request with the
    same key makes no other job for 24 hours, after a restart of yours too.
    """
    # An option that was not set is not sent: the service refuses those of other modes.
    fields = request.model_dump(exclude_unset=True) if isinstance(request, JobRequest) else request
    return Call("POST", _JOBS, JobStatus).of(fields).once(idempotency_key)


def job(job_id: str) -> Call[JobStatus]:
    """`GET /v1/detect/jobs/{id}`: how many of a job's documents are answered."""
    return Call("GET", _below(_JOBS, job_id), JobStatus)


def job_results(job_id: str, *, offset: int = 0, limit: int = MOST_RESULTS) -> Call[JobResults]:
    """`GET /v1/detect/jobs/{id}/results`, which end before the first document without an answer."""
    path = f"{_below(_JOBS, job_id)}/results?offset={offset:d}&limit={limit:d}"
    return Call("GET", path, JobResults)


def delete_job(job_id: str) -> Call[BaseModel]:
    """Its answer is empty."""
    return Call("DELETE", _below(_JOBS, job_id), BaseModel)


def _below(path: str, name: str) -> str:
    """Below `path` whatever the name is, be it `..` or empty."""
    return f"{path}/{quote(name, safe='').replace('.', '%2E') or '%20'}"
