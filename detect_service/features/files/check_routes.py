"""`POST /v1/content_provenance_checks`: a file is read, and its texts are asked about as by `/v1/detect`."""

import time
from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Body, Request, Response
from pydantic import TypeAdapter

from ttmark.detect_service.api.body_route import body_route, body_size, valid_fields
from ttmark.detect_service.api.problems import BODY_PROBLEMS, Caller, problems
from ttmark.detect_service.api.routes import Answering
from ttmark.detect_service.documents.backend import DetectionBackend
from ttmark.detect_service.features.files.check_results import Models, outcomes
from ttmark.detect_service.features.files.routes import FileReader
from ttmark.detect_service.features.files.text.extraction import Extraction
from ttmark.detect_service.results import result_json
from ttmark.shared.access.scopes import Scope
from ttmark.shared.http.form_body import FORM_TYPE
from ttmark.shared.http.request_body import BODY_BYTES, JOBS_TAKE_MORE, HttpLimits, RunLong, parse_json
from ttmark.shared.http.service_errors import OPENAI_CALL, TooLarge, Unprocessable
from ttmark.shared.schemas.detection.content_provenance import CheckedText, CheckForm, ContentProvenanceCheck
from ttmark.shared.schemas.detection.detect import (
    MAX_DOCUMENTS,
    REQUESTS,
    CombinedRequest,
    DetectionRequest,
    DetectionResponse,
    Document,
)

CHECKS_PATH = OPENAI_CALL
_ELSEWHERE = ("inputs", "conversation")


def checks_router(
    reader: FileReader, answer: Answering, backend: DetectionBackend, run_long: RunLong
) -> APIRouter:
    """The route; `run_long` validates long bodies."""
    router = APIRouter(tags=["detection"], route_class=body_route(Scope.DETECT, run_long))

    @router.post(CHECKS_PATH, response_model=ContentProvenanceCheck, responses=problems(404, *BODY_PROBLEMS))
    async def check(
        body: Annotated[CheckForm, Body(media_type=FORM_TYPE)], caller: Caller, request: Request
    ) -> Response:
        """Whether the text of a file carries marks: the call that OpenAI's clients have."""
        asked = _question(body)
        texts = _texts(await reader.text_of(body.file, caller, request))
        documents = [
            Document(text=one.text, attachment=bool(one.attachment)) for one in texts if one.text is not None
        ]
        if len(documents) > MAX_DOCUMENTS:
            raise TooLarge(
                f"The file holds {len(documents)} texts, more than the limit of {MAX_DOCUMENTS}. "
                f"{JOBS_TAKE_MORE}",
                param="file",
            )
        if not documents:
            outcomes(texts, {})
        size = sum(len(one.text or "") for one in documents)
        request.scope["state"][BODY_BYTES] = max(size, body_size(request))  # a packed file is longer inside
        of_key = {}
        if caller.sees_evidence:
            keys = backend.keys.for_tenant(caller.tenant)
            models = backend.tokenizers.models
            of_key = {key.key_id: models.get(key.profile.tokenizer_fingerprint) for key in keys}
        written = partial(_written, texts, of_key, shows_text=body.text is not None)
        try:
            return await answer(asked.model_copy(update={"inputs": documents}), caller, request, written)
        except TooLarge as error:
            raise type(error)(f"{error.message} {JOBS_TAKE_MORE}", param="file") from error

    return router


def _question(body: CheckForm) -> DetectionRequest:
    """What is asked of each text, of an empty one for now. Raises what says that it may not be asked."""
    fields: Any = {} if body.question is None else parse_json(body.question.content, HttpLimits())
    if not isinstance(fields, dict):
        raise Unprocessable("The question is an object in JSON.", param="question")
    kind = REQUESTS.get(str(fields.pop("mode", CombinedRequest.mode)))
    if kind is None:
        raise Unprocessable(f"The mode is {', '.join(REQUESTS)}.", param="question.mode")
    for name in _ELSEWHERE:
        if name in fields:
            raise Unprocessable(f"A file is asked about without `{name}`.", param=f"question.{name}")
    question: DetectionRequest = valid_fields(kind, TypeAdapter(kind), {**fields, "inputs": [{"text": ""}]})
    return question


def _texts(found: Extraction) -> list[CheckedText]:
    """The texts of a file, those among them that could not be read included."""
    if not found.parts:
        return [
            CheckedText(
                title=found.title,
                text=found.text,
                pages=list(found.pages) or None,
                recognised=found.recognised or None,
                unread=found.unread,
            )
        ]
    return [
        CheckedText(
            name=part.name,
            text=None if part.problem else part.text,
            attachment=part.attachment,
            unread=part.unread or found.unread,
            problem=part.problem,
        )
        for part in found.parts
    ]


def _written(
    texts: list[CheckedText], models: Models, response: DetectionResponse, *, shows_text: bool
) -> bytes:
    """The answer in JSON, in which each text has its result."""
    results = iter(response.results)
    texts = [one if one.text is None else one.model_copy(update={"result": next(results)}) for one in texts]
    found, silent = outcomes(texts, models)
    check = ContentProvenanceCheck(
        created_at=int(time.time()),
        results=found,
        not_looked_at=silent,
        texts=[],
        skipped_keys=response.skipped_keys,
        request_id=response.request_id,
    )
    left_out = {"result"} if shows_text else {"result", "text"}
    shown = [one.model_dump(exclude=left_out) for one in texts]
    for fields, one in zip(shown, texts, strict=True):
        if one.result is not None:
            fields["result"] = orjson.Fragment(result_json(one.result))
    return orjson.dumps(check.model_dump() | {"texts": shown})
