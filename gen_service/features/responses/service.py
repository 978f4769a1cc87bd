"""Opens `/v1/responses`."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from ttmark.gen_service.api.account import Accounting
from ttmark.gen_service.api.described import with_stream
from ttmark.gen_service.api.features import GenerationFeature
from ttmark.gen_service.api.pipeline import answer_with_text
from ttmark.gen_service.api.plan.backend import GenerationBackend
from ttmark.gen_service.api.plan.request_plan import Plan, Planner
from ttmark.gen_service.features.responses.responses_format import ResponsesFormat
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.auth import require
from ttmark.shared.schemas.generation.responses import RESPONSE_EVENTS, ResponseObject
from ttmark.shared.schemas.generation.responses_request import ResponsesRequest

Caller = Annotated[Principal, Depends(require(Scope.GENERATE))]


def opened(_: object) -> GenerationFeature:
    return GenerationFeature(responses_router, {"/v1/responses": Scope.GENERATE}, RESPONSE_EVENTS)


def responses_router(books: Accounting, route: type[APIRoute]) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["generation"], route_class=route)
    described = with_stream("The response, or with `stream` its events", *RESPONSE_EVENTS)

    @router.post("/responses", response_model=ResponseObject, responses=described)
    async def responses(body: ResponsesRequest, caller: Caller, request: Request) -> Response:
        """Answers a conversation; nothing is stored."""
        return await answer_with_text(books, body, caller, request, plan_response, ResponsesFormat)

    return router


async def plan_response(body: ResponsesRequest, caller: Principal, backend: GenerationBackend) -> Plan:
    """The plan of a request to the Responses API.

    Raises:
        ServiceError: the request cannot be served; the message says why.
    """
    planner = Planner("resp_", body, caller, backend)
    planner.open_stages()
    messages = await run_in_threadpool(lambda: body.messages)
    prompt, usual = await planner.read("input", messages)
    return await planner.plan([prompt], body.max_output_tokens or usual, limit_field="max_output_tokens")
