"""`POST /v1/extract`: the text of a file, for the console and for clients without a reader of their own."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from ttmark.detect_service.api.body_route import body_route
from ttmark.detect_service.api.extraction_metrics import ExtractionMetrics
from ttmark.detect_service.api.problems import BODY_PROBLEMS, problems
from ttmark.detect_service.extraction import (
    Extraction,
    ExtractionBusy,
    ExtractionWorkers,
    LimitExceeded,
    UnreadableFile,
)
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.auth import require
from ttmark.shared.http.disconnect import unless_disconnected
from ttmark.shared.http.json_body import RunLong
from ttmark.shared.http.service_errors import TooLarge, TooManyRequests, Unprocessable
from ttmark.shared.schemas.extraction import ExtractedPart, ExtractionRequest, ExtractionResponse

Caller = Annotated[Principal, Depends(require(Scope.DETECT))]


def extraction_router(workers: ExtractionWorkers, metrics: ExtractionMetrics, run_long: RunLong) -> APIRouter:
    """The route that reads files, in processes that may die; nothing of them is kept.

    `run_long` validates long bodies.
    """
    router = APIRouter(prefix="/v1", tags=["detection"], route_class=body_route(Scope.DETECT, run_long))

    async def text_of(body: ExtractionRequest, caller: Principal, request: Request) -> Extraction:
        work = workers.extract(body.filename, body.content, owner=caller.tenant)
        try:
            with metrics.file(body.filename):
                return await unless_disconnected(request.receive, work)
        except LimitExceeded as error:
            raise TooLarge(str(error), param="content") from error
        except UnreadableFile as error:
            raise Unprocessable(str(error), param="content") from error
        except ExtractionBusy as error:
            message = "Too many files are waiting to be read."
            raise TooManyRequests(message, retry_after=error.retry_after) from error

    @router.post("/extract", response_model=ExtractionResponse, responses=problems(*BODY_PROBLEMS))
    async def extract(body: ExtractionRequest, caller: Caller, request: Request) -> Response:
        """The text of a file, or of a file that holds several texts each of them."""
        found = await text_of(body, caller, request)
        parts = [ExtractedPart(name=part.name, text=part.text, problem=part.problem) for part in found.parts]
        answer = ExtractionResponse(text=found.text, encoding=found.encoding, parts=parts or None)
        return Response(answer.model_dump_json(exclude_none=True), media_type="application/json")

    return router
