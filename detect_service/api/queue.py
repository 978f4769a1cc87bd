"""`/v1/queue`: what a team of moderators looks at."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import JSONResponse

from ttmark.detect_service.api.body_route import body_route, json_answer
from ttmark.detect_service.api.problems import BODY_PROBLEMS, KEPT_PROBLEMS, Caller, Identifier, problems
from ttmark.detect_service.queue.queue_service import ChangedMeanwhile, QueueService
from ttmark.shared.access.scopes import Scope
from ttmark.shared.http.request_body import RunLong
from ttmark.shared.http.service_errors import INSTANCE_PREFIX, PROBLEM_MEDIA_TYPE, NotFound, problem_document
from ttmark.shared.observability.tracing import request_id
from ttmark.shared.schemas.review_queue import (
    MOST_ITEMS,
    QueueChange,
    QueueConflict,
    QueueEntry,
    QueueItem,
    QueuePage,
    QueueState,
)

QUEUE_PATH = "/v1/queue"


def queue_routers(service: QueueService | None, run_long: RunLong) -> Sequence[APIRouter]:
    """The queue; without a `service` each route is 404. `run_long` does what is long off the event loop."""
    writing = APIRouter(prefix=QUEUE_PATH, tags=["queue"], route_class=body_route(Scope.DETECT, run_long))
    reading = APIRouter(prefix=QUEUE_PATH, tags=["queue"], responses=problems(*KEPT_PROBLEMS))

    @writing.post(
        "",
        status_code=201,
        response_model=QueueItem,
        responses=problems(404, 409, *BODY_PROBLEMS)
        | {200: {"model": QueueItem, "description": "It was there."}},
    )
    async def add(body: QueueEntry, caller: Caller, request: Request) -> Response:
        """Adds a document; one that is in the queue stays as it is. What is said is not checked."""
        item, new = await _existing(service).add(body, caller, request_id(request.scope))
        return json_answer(item, 201 if new else 200)

    @writing.post(
        "/changes",
        response_model=QueueItem,
        responses=problems(404, *BODY_PROBLEMS)
        | {409: {"model": QueueConflict, "description": "Somebody else changed it; `present` is how it is."}},
    )
    async def change(body: QueueChange, caller: Caller, request: Request) -> Response:
        """Brings an item into a state, if nobody changed it since it was read."""
        identifier = request_id(request.scope)
        try:
            item = await _existing(service).change(body, caller, identifier)
        except ChangedMeanwhile as error:
            document = problem_document(error, INSTANCE_PREFIX + identifier)
            document["present"] = error.present.model_dump(mode="json")
            return JSONResponse(document, error.status, media_type=PROBLEM_MEDIA_TYPE)
        return json_answer(item)

    @reading.get("")
    async def page(
        caller: Caller,
        state: Annotated[QueueState | None, Query(description="Of the items; left out: any.")] = None,
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_ITEMS)] = MOST_ITEMS,
    ) -> QueuePage:
        """Items of the tenant, the newest first: to tokens with `detect:evidence`."""
        return await _existing(service).page(caller, state, offset, limit)

    @reading.get("/{item_id:case_id}")
    async def read(item_id: Identifier, caller: Caller) -> QueueItem:
        """An item: to the token that added it, and to its tenant's with `detect:evidence`."""
        return await _existing(service).read(item_id, caller)

    @reading.delete("/{item_id:case_id}", status_code=204)
    async def delete(item_id: Identifier, caller: Caller, request: Request) -> None:
        """Forgets an item, at the request of the token that added it."""
        await _existing(service).delete(item_id, caller, request_id(request.scope))

    return writing, reading


def _existing(service: QueueService | None) -> QueueService:
    if service is None:
        raise NotFound("This service keeps no queue: it was started without TTMARK_QUEUE_KEEP_DAYS.")
    return service
