"""The work on one part of a job: open it, examine its documents, answer."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ttmark.detect_service.api.metrics import DetectionMetrics, Journal
from ttmark.detect_service.ask import Means, ask
from ttmark.detect_service.documents.documents_without_verdict import log_fault
from ttmark.detect_service.fair_work.fair_queue import FairQueue, QueueFull
from ttmark.detect_service.features.jobs.job_service import JobMetrics
from ttmark.detect_service.features.jobs.job_store import Claim, PartAnswer
from ttmark.detect_service.features.jobs.sealed_jobs import JobHead, Jobs, open_head
from ttmark.detect_service.question import Gate, Question
from ttmark.shared.access.scopes import Scope
from ttmark.shared.events import EventSink
from ttmark.shared.http.auth import check_scope
from ttmark.shared.http.service_errors import InternalError, ServiceError, Unauthorized
from ttmark.shared.schemas.detection.detect import DetectionResult, Document, DocumentError
from ttmark.shared.schemas.detection.jobs import JobResult
from ttmark.shared.vault.stores.key_store_errors import InvalidToken, StoreUnavailable

ROUTE = "/v1/detect/jobs"
# A part whose workers died so often is answered with errors: one of its documents may be why.
MOST_ATTEMPTS = 5
_FULL_SECONDS = 1.0
_REFUSED_DOCUMENT = (413, 422)


@dataclass(frozen=True, slots=True)
class PartWork:
    """What a worker does with its parts. `metrics`, `detection`: of jobs, and of the documents in them."""

    jobs: Jobs
    means: Means
    queue: FairQueue
    metrics: JobMetrics
    detection: DetectionMetrics
    audit: EventSink

    async def do(self, claim: Claim) -> None:
        """Examines and answers a part. Raises KeyStoreError: a store is away, or the part does not open."""
        head, seal = await open_head(self.jobs.kek, claim.job.job_id, claim.job.head)
        documents = seal.open_documents(claim.part, claim.documents)
        if claim.attempt > MOST_ATTEMPTS:
            died = InternalError("The processes that examined this document and those beside it ended.")
            outcomes: Sequence[DetectionResult | ServiceError] = [died] * len(documents)
        else:
            outcomes = await self._outcomes(claim, head, documents)
        first = claim.part * head.part_documents
        results = [
            _result(index, document, outcome)
            for index, (document, outcome) in enumerate(zip(documents, outcomes, strict=True), first)
        ]
        failed = sum(result.error is not None for result in results)
        now = time.time()
        answer = PartAnswer(
            results=seal.results(claim.part, results),
            answered=len(results),
            failed=failed,
            now=now,
            expires_at=now + self.jobs.limits.keep_seconds,
            calls=head.options.webhook is not None,
        )
        if await self.jobs.store.answer(claim, answer):
            self.metrics.documents.labels("answered").inc(len(results) - failed)
            self.metrics.documents.labels("failed").inc(failed)

    async def _outcomes(
        self, claim: Claim, head: JobHead, documents: list[Document]
    ) -> Sequence[DetectionResult | ServiceError]:
        try:
            caller = await self.jobs.current(head.token_id)
            check_scope(caller, Scope.DETECT)
            request = head.options.request(documents)
        except InvalidToken:
            error = Unauthorized("The access token that made this job is no longer valid.")
            return [error] * len(documents)
        except ServiceError as error:
            return [error] * len(documents)
        journal = Journal(request.mode, self.detection, ROUTE, {"request_id": claim.job.job_id})
        outcomes = await self._examined(Question(request, caller, claim.job.job_id, journal))
        journal.close(caller, self.audit)
        return outcomes

    async def _examined(self, question: Question) -> Sequence[DetectionResult | ServiceError]:
        """An outcome for each document; one that is refused is found by halving."""
        documents = question.request.inputs
        try:
            response = await ask(question, self.means, JobGate(self.queue, question), lambda given: given)
        except QueueFull:
            await asyncio.sleep(_FULL_SECONDS)
            return await self._examined(question)
        except StoreUnavailable:
            raise  # no fault of the documents: the part is done again
        except ServiceError as error:
            if error.status not in _REFUSED_DOCUMENT or len(documents) == 1:
                return [error] * len(documents)
        except Exception as error:  # of the part: what fails for a document is an outcome of its own
            log_fault(error)
            return [InternalError("Something went wrong on our side.")] * len(documents)
        else:
            return response.results
        middle = len(documents) // 2
        outcomes: list[DetectionResult | ServiceError] = []
        for some in (documents[:middle], documents[middle:]):
            half = question.request.model_copy(update={"inputs": some})
            outcomes += await self._examined(replace(question, request=half))
        return outcomes


class JobGate(Gate):
    """Lets in what was paid for when the job was made, in the background."""

    leaves_evenly = True

    def __init__(self, queue: FairQueue, question: Question) -> None:
        documents = question.request.inputs
        self._queue = queue
        self._line = question.caller.tenant
        self._cost = sum(len(document.text or document.token_ids or ()) for document in documents)

    async def read(self, work: Callable[[], Any]) -> Any:
        return await self._queue.run(self._line, self._cost, work, background=True)

    run = read


def _result(index: int, document: Document, outcome: DetectionResult | ServiceError) -> JobResult:
    name = document.id or str(index)
    if isinstance(outcome, ServiceError):
        error = DocumentError(code=outcome.code, message=outcome.message)
        return JobResult(index=index, id=name, error=error)
    if outcome.error is not None:
        return JobResult(index=index, id=name, error=outcome.error)
    return JobResult(index=index, id=name, result=outcome)
