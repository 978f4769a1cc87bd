"""Signed cases: pages of them, and the key that they are verified with."""

from fastapi import APIRouter, Request, Response
from pydantic import Field

from ttmark.detect_service.api.body_route import body_route, body_size, json_answer
from ttmark.detect_service.api.problems import BODY_PROBLEMS, Caller, problems
from ttmark.detect_service.features.cases.case_writer import content_hash, page_around
from ttmark.shared.access.scopes import Scope
from ttmark.shared.http.request_body import RunLong
from ttmark.shared.http.service_errors import NotFound, TooLarge, Unprocessable
from ttmark.shared.schemas.detection.detect import Document
from ttmark.shared.schemas.fields import AnswerModel, StrictModel
from ttmark.shared.signed_files.signed_file import CaseKey, CaseRefused, case_page, verified_case


class CasePageRequest(StrictModel):
    """A case that this service signed."""

    case: str = Field(min_length=1, description="The case as the result had it.")
    text: str | None = Field(
        default=None, description="The text that was checked, to be shown with its passages marked."
    )


class CasePage(AnswerModel):
    """The page."""

    page: str = Field(description="A html file that `ttmark case verify` reads, to be saved as it is.")


CASES_PATH = "/v1/cases"
PUBLIC_KEY_PATH = "/.well-known/ttmark-case-key"


# Reading a case takes the interpreter a tenth of a second for each megabyte. A thousand passages take less.
_CASE_BYTES = 2**20


def case_page_router(key: CaseKey | None, run_long: RunLong) -> APIRouter:
    """Pages of cases. Without a `key` nothing is verified: 404. `run_long` does it off the event loop."""
    router = APIRouter(prefix=CASES_PATH, tags=["detection"], route_class=body_route(Scope.DETECT, run_long))

    @router.post("/page", response_model=CasePage, responses=problems(404, *BODY_PROBLEMS))
    async def page(body: CasePageRequest, caller: Caller, request: Request) -> Response:  # noqa: ARG001 body_route
        """A case of this service as a page, signed too."""
        existing = _existing(key)
        if len(body.case.encode()) > _CASE_BYTES:
            raise TooLarge(f"The case may have {_CASE_BYTES} bytes.", param="case")
        made = await run_long(request, body_size(request), lambda: _page(body, existing))
        return json_answer(CasePage(page=made))

    return router


def public_key_router(key: CaseKey | None) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get(PUBLIC_KEY_PATH)
    async def public_key() -> Response:
        return Response(_existing(key).public.pem(), media_type="application/x-pem-file")

    return router


def _existing(key: CaseKey | None) -> CaseKey:
    if key is None:
        raise NotFound("This service signs no cases: it was started without TTMARK_CASE_KEY_FILE.")
    return key


def _page(body: CasePageRequest, key: CaseKey) -> str:
    try:
        case = verified_case(body.case.encode(), key.public)
    except CaseRefused as error:
        raise Unprocessable(f"The case is refused: {error}.", param="case") from error
    if body.text is not None and content_hash(Document(text=body.text)) != case["document"]:
        raise Unprocessable("The case is about another text.", param="text")
    before, after = page_around(case, body.text)
    return case_page(before, case, after, key)
