"""What a signed case can become, and the key that it is verified with."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from ttmark.detect_service.api.body_route import body_route
from ttmark.detect_service.api.problems import BODY_PROBLEMS, problems
from ttmark.detect_service.cases.cases import content_hash
from ttmark.detect_service.cases.page import page_around
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.cases.case_file import CaseRefused, case_page, verified_case
from ttmark.shared.cases.case_key import CaseKey
from ttmark.shared.http.auth import require
from ttmark.shared.http.json_body import RunLong
from ttmark.shared.http.service_errors import NotFound, Unprocessable
from ttmark.shared.schemas.cases import CasePage, CasePageRequest
from ttmark.shared.schemas.detection import Document

PUBLIC_KEY_PATH = "/.well-known/ttmark-case-key"

Caller = Annotated[Principal, Depends(require(Scope.DETECT))]


def cases_router(key: CaseKey | None, run_long: RunLong) -> APIRouter:
    """Pages of cases; without a `key` nothing is signed and nothing verified."""
    router = APIRouter(prefix="/v1/cases", tags=["detection"], route_class=body_route(Scope.DETECT, run_long))

    @router.post("/page", response_model=CasePage, responses=problems(404, *BODY_PROBLEMS))
    async def page(body: CasePageRequest, caller: Caller, request: Request) -> Response:  # noqa: ARG001 body_route
        """A case of this service as a page, signed too."""
        answer = CasePage(page=_page(body, _existing(key)))
        return Response(answer.model_dump_json(), media_type="application/json")

    return router


def public_key_router(key: CaseKey | None) -> APIRouter:
    """The public key in PEM, for everybody."""
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
