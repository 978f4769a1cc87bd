"""Signed cases: pages of them, cases that are kept, and the key that they are verified with."""

from collections.abc import Sequence

from fastapi import APIRouter, Request, Response
from starlette.convertors import StringConvertor, register_url_convertor

from ttmark.detect_service.api.body_route import body_route, body_size, json_answer
from ttmark.detect_service.api.problems import BODY_PROBLEMS, KEPT_PROBLEMS, Caller, Identifier, problems
from ttmark.detect_service.cases.case_service import CaseService
from ttmark.detect_service.cases.case_writer import content_hash, page_around
from ttmark.detect_service.idempotency.idempotency import IDEMPOTENCY_PARAMETER, idempotency_key
from ttmark.shared.access.scopes import Scope
from ttmark.shared.cases.signed_file import CASE_START, Case, CaseKey, CaseRefused, case_page, verified_case
from ttmark.shared.http.request_body import RunLong
from ttmark.shared.http.service_errors import NotFound, TooLarge, Unprocessable
from ttmark.shared.observability.tracing import request_id
from ttmark.shared.schemas.cases import CasePage, CasePageRequest, CaseStoreRequest, CaseText, StoredCase
from ttmark.shared.schemas.detection import Document

CASES_PATH = "/v1/cases"
PUBLIC_KEY_PATH = "/.well-known/ttmark-case-key"


class _CaseIds(StringConvertor):
    """The place of a case id in a path; other names, as `page`, are other resources."""

    regex = "[0-9a-f]{32}"


register_url_convertor("case_id", _CaseIds())
# Reading a case takes the interpreter a tenth of a second for each megabyte. A thousand passages take less.
_CASE_BYTES = 2**20


def case_routers(key: CaseKey | None, service: CaseService | None, run_long: RunLong) -> Sequence[APIRouter]:
    """Pages of cases, and cases that are kept.

    Without a `key` nothing is signed and nothing verified, without a `service` nothing kept: both are 404.
    `run_long` does what is long off the event loop.
    """
    making = APIRouter(prefix=CASES_PATH, tags=["detection"], route_class=body_route(Scope.DETECT, run_long))
    kept = APIRouter(prefix=CASES_PATH, tags=["detection"], responses=problems(*KEPT_PROBLEMS))

    @making.post("/page", response_model=CasePage, responses=problems(404, *BODY_PROBLEMS))
    async def page(body: CasePageRequest, caller: Caller, request: Request) -> Response:  # noqa: ARG001 body_route
        """A case of this service as a page, signed too."""
        existing = _existing(key)
        _check_size(body.case, _CASE_BYTES)
        made = await run_long(request, body_size(request), lambda: _page(body, existing))
        return json_answer(CasePage(page=made))

    @making.post(
        "",
        status_code=201,
        response_model=StoredCase,
        responses=problems(404, 409, *BODY_PROBLEMS),
        openapi_extra=IDEMPOTENCY_PARAMETER,
    )
    async def store(body: CaseStoreRequest, caller: Caller, request: Request) -> Response:
        """Keeps a case of this service for the days that `GET /v1/keys` names."""
        keeping, existing, once = _keeping(service), _existing(key), idempotency_key(request)
        _check_size(body.case, keeping.kept.case_bytes)
        if not body.case.startswith(CASE_START):
            raise Unprocessable("Only json cases are kept: a page may hold a text.", param="case")
        await run_long(request, body_size(request), lambda: _verified(body.case, existing))
        stored = await keeping.store(body.case, caller, request_id(request.scope), once)
        return json_answer(stored, 201, {"Location": f"{CASES_PATH}/{stored.id}"})

    @kept.get("/{case_id:case_id}")
    async def read(case_id: Identifier, caller: Caller, request: Request) -> CaseText:
        """A case that is kept: to the token that stored it, and to its tenant's with `detect:evidence`."""
        return await _keeping(service).read(case_id, caller, request_id(request.scope))

    @kept.delete("/{case_id:case_id}", status_code=204)
    async def delete(case_id: Identifier, caller: Caller, request: Request) -> None:
        """Forgets a case, at the request of the token that stored it."""
        await _keeping(service).delete(case_id, caller, request_id(request.scope))

    return making, kept


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


def _keeping(service: CaseService | None) -> CaseService:
    if service is None:
        raise NotFound("This service keeps no cases: it was started without TTMARK_CASES_KEEP_DAYS.")
    return service


def _check_size(case: str, most: int) -> None:
    if len(case.encode()) > most:
        raise TooLarge(f"The case may have {most} bytes.", param="case")


def _verified(case: str, key: CaseKey) -> Case:
    try:
        return verified_case(case.encode(), key.public)
    except CaseRefused as error:
        raise Unprocessable(f"The case is refused: {error}.", param="case") from error


def _page(body: CasePageRequest, key: CaseKey) -> str:
    case = _verified(body.case, key)
    if body.text is not None and content_hash(Document(text=body.text)) != case["document"]:
        raise Unprocessable("The case is about another text.", param="text")
    before, after = page_around(case, body.text)
    return case_page(before, case, after, key)
