"""`/v1/detect/jobs`: thousands of documents that are answered in the background."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query, Request, Response

from ttmark.detect_service.api.body_route import body_route, body_size, json_answer
from ttmark.detect_service.api.problems import BODY_PROBLEMS, KEPT_PROBLEMS, Caller, Identifier, problems
from ttmark.detect_service.features.jobs.idempotency.idempotency import IDEMPOTENCY_PARAMETER, idempotency_key
from ttmark.detect_service.features.jobs.job_service import JobService
from ttmark.shared.access.scopes import Scope
from ttmark.shared.http.request_body import RunLong
from ttmark.shared.http.request_id import request_id
from ttmark.shared.schemas.detection.jobs import MOST_RESULTS, JobRequest, JobResults, JobStatus

JOBS_PATH = "/v1/detect/jobs"


def job_routers(
    service: JobService, run_long: RunLong, shorten: Callable[[Any], None] = lambda _: None
) -> Sequence[APIRouter]:
    """The route that makes jobs, and those of a job; `run_long` does what is long off the event loop."""
    making = APIRouter(
        prefix=JOBS_PATH, tags=["jobs"], route_class=body_route(Scope.DETECT, run_long, shorten)
    )
    jobs = APIRouter(prefix=JOBS_PATH, tags=["jobs"], responses=problems(*KEPT_PROBLEMS))

    @making.post(
        "",
        status_code=202,
        response_model=JobStatus,
        responses=problems(404, 409, *BODY_PROBLEMS),
        openapi_extra=IDEMPOTENCY_PARAMETER,
    )
    async def create(body: JobRequest, caller: Caller, request: Request) -> Response:
        """Takes in a job. Its documents are answered as the mode's route would, when nobody else waits."""
        run, key = partial(run_long, request, body_size(request)), idempotency_key(request)
        status = await service.create(body, caller, request_id(request.scope), run, key)
        return json_answer(status, 202, {"Location": f"{JOBS_PATH}/{status.id}"})

    @jobs.get("/{job_id}")
    async def status(job_id: Identifier, caller: Caller) -> JobStatus:
        """How many documents of a job are answered."""
        return await service.status(job_id, caller)

    @jobs.get(
        "/{job_id}/results",
        response_model=JobResults,
        responses={200: {"content": {"application/jsonl": {"schema": {"type": "string"}}}}},
    )
    async def results(
        job_id: Identifier,
        caller: Caller,
        offset: Annotated[int, Query(ge=0, le=2**31, description="Index of the first document.")] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_RESULTS, description="Most results.")] = MOST_RESULTS,
        format: Annotated[  # noqa: A002 - the parameter's name
            Literal["json", "jsonl"],
            Query(description="`jsonl`: a result in each line; the header Link names the next page."),
        ] = "json",
    ) -> Response:
        """Results in the order of the documents, up to the first one without, while the job goes on too."""
        lines, after, status = await service.results(job_id, caller, offset, limit)
        if format == "jsonl":
            following = f"{JOBS_PATH}/{job_id}/results?offset={after}&limit={limit}&format=jsonl"
            headers = {} if after is None else {"Link": f'<{following}>; rel="next"'}
            content = b"".join(line + b"\n" for line in lines)
            return Response(content, media_type="application/jsonl", headers=headers)
        page = JobResults(results=[], next_offset=after, status=status.status).model_dump()
        content = orjson.dumps(page | {"results": list(map(orjson.Fragment, lines))})
        return Response(content, media_type="application/json")

    @jobs.delete("/{job_id}", status_code=204)
    async def delete(job_id: Identifier, caller: Caller, request: Request) -> None:
        """Ends a job that goes on, and forgets its documents and results."""
        await service.delete(job_id, caller, request_id(request.scope))

    return making, jobs
