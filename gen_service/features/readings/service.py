"""Opens `/v1/readings`."""

from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from ttmark.gen_service.api.account import Accounting
from ttmark.gen_service.api.described import ERRORS
from ttmark.gen_service.api.features import GenerationFeature
from ttmark.gen_service.features.readings.readings import answer_with_readings
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.auth import require
from ttmark.shared.schemas.generation.readings import ReadingsRequest, ReadingsResponse

Reads = Annotated[Principal, Depends(require(Scope.READ))]


def opened(_: object) -> GenerationFeature:
    return GenerationFeature(readings_router, {"/v1/readings": Scope.READ})


def readings_router(books: Accounting, route: type[APIRoute]) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["generation"], route_class=route)

    @router.post("/readings", response_model=ReadingsResponse, responses=ERRORS)
    async def readings(body: ReadingsRequest, caller: Reads, request: Request) -> Response:
        """Says how likely the model finds each feature of texts."""
        answer = await answer_with_readings(books, body, caller, request)
        content = {**vars(answer), "readings": list(map(vars, answer.readings))}
        written_out = await run_in_threadpool(orjson.dumps, content)
        return Response(written_out, media_type="application/json")

    return router
