"""`POST /v1/extract`: the text of a file, for the console and for clients without a reader of their own."""

from typing import Annotated

from fastapi import APIRouter, Depends

from detect_service.api.problems import BODY_PROBLEMS, problems
from detect_service.extraction import UnreadableFile, extract_text
from shared.http.auth import require
from shared.http.errors import Unprocessable
from shared.keys import Principal, Scope
from shared.schemas.detection import ExtractionRequest, ExtractionResponse


def extraction_router() -> APIRouter:
    """The route that reads files; nothing of them is kept."""
    router = APIRouter(prefix="/v1", tags=["detection"])

    @router.post("/extract", responses=problems(*BODY_PROBLEMS))
    def extract(
        body: ExtractionRequest, _: Annotated[Principal, Depends(require(Scope.DETECT))]
    ) -> ExtractionResponse:
        """The text of a txt, md, html or docx file."""
        try:
            return ExtractionResponse(text=extract_text(body.filename, body.content))
        except UnreadableFile as error:
            raise Unprocessable(str(error), param="content") from error

    return router
