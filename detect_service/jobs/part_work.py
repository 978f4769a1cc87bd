"""The work on one part of a job: open it, examine its documents, answer."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ttmark.detect_service.api.metrics_and_audit import DetectionMetrics, JobMetrics, Journal
from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.detection_request import Detection, answered_evenly
from ttmark.detect_service.documents_without_verdict import log_fault
from ttmark.detect_service.examination import Finish
from ttmark.detect_service.fair_work.fair_queue import FairQueue, QueueFull
from ttmark.detect_service.jobs.job_store import Claim, PartAnswer
from ttmark.detect_service.jobs.sealed_jobs import JobHead, Jobs, open_head
from ttmark.detect_service.key_selection import check_askable, permitted
from ttmark.detect_service.manifests.manifest_examiner import ManifestExaminer, with_manifests_of
from ttmark.detect_service.model_reader.reads_along import ReadsAlong
from ttmark.detect_service.spending import Spending
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.auth import check_scope
from ttmark.shared.http.service_errors import InternalError, ServiceError, Unauthorized
from ttmark.shared.schemas.detection import (
    DetectionRequest,
    DetectionResult,
    Document,
    DocumentError,
)
from ttmark.shared.schemas.jobs import JobResult
from ttmark.shared.vault.audit_events import AuditSink
from ttmark.shared.vault.key_store_errors import InvalidToken

ROUTE = "/v1/detect/jobs"
# A part whose workers died so often is answered with errors: one of its documents may be why.
MOST_ATTEMPTS = 5
_FULL_SECONDS = 1.0
_REFUSED_DOCUMENT = (413, 422)


@dataclass(frozen=True, slots=True)
class PartWork:
    """What a worker does with its parts.

    Attributes:
        queue: where the work is done, in the background.
        metrics, detection: of jobs, and of the documents in them.
        reader: reads texts along.
        examiner: verifies manifests.
        spending: counts the documents of callers who see verdicts alone; None: nothing does.
    """

    jobs: Jobs
    backend: DetectionBackend
    queue: FairQueue
    metrics: JobMetrics
    detection: DetectionMetrics
    audit: AuditSink
    reader: ReadsAlong
    examiner: ManifestExaminer = field(default_factory=lambda: ManifestExaminer(None))
    spending: Spending | None = None

    async def do(self, claim: Claim) -> None:
        """Examines the documents of a part and writes the answers.

        Raises:
            KeyStoreError: a store is away, or the part does not open.
        """
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
            request = permitted(head.options.request(documents), caller)
        except InvalidToken:
            error = Unauthorized("The access token that made this job is no longer valid.")
            return [error] * len(documents)
        except ServiceError as error:
            return [error] * len(documents)
        journal = Journal(head.options.mode, self.detection, ROUTE)
        parts = await self.examiner.part(request, self.backend.label)
        manifests = await self.examiner.examined(parts.texts)

        def finish(index: int, result: DetectionResult, _: Sequence[str]) -> DetectionResult:
            return with_manifests_of(index, result, parts, manifests)

        mode = head.options.mode
        outcomes = await self._examined(parts.visible, mode, caller, claim.job.job_id, journal, finish)
        journal.close(caller, claim.job.job_id, self.audit)
        return outcomes

    async def _examined(
        self,
        request: DetectionRequest,
        mode: str,
        caller: Principal,
        job_id: str,
        journal: Journal,
        finish: Finish,
    ) -> list[DetectionResult | ServiceError]:
        """An outcome for each document; one that is refused is found by halving."""
        documents = request.inputs
        cost = sum(len(document.text or document.token_ids or ()) for document in documents)

        async def run(work: Callable[[], Any]) -> Any:
            return await self.queue.run(caller.tenant, cost, work, background=True)

        counted, selection = None, None
        try:
            if self.spending is not None and not caller.sees_evidence:
                selection = check_askable(request, caller, self.backend)
                counted = await self.spending.ask(request, mode, caller, selection, run)
            detection = Detection(
                request,
                caller,
                self.backend,
                job_id,
                journal,
                finish,
                counted,
                self.reader.state,
                selection=selection,
            )
            return await answered_evenly(
                detection, run, self.reader, lambda response: list(response.results), self.spending
            )
        except QueueFull:
            await asyncio.sleep(_FULL_SECONDS)
            return await self._examined(request, mode, caller, job_id, journal, finish)
        except ServiceError as error:
            if error.status not in _REFUSED_DOCUMENT or len(documents) == 1:
                return [error] * len(documents)
        except Exception as error:  # of the part: what fails for a document is an outcome of its own
            log_fault(error)
            return [InternalError("Something went wrong on our side.")] * len(documents)
        middle = len(documents) // 2
        outcomes = []
        for first, some in ((0, documents[:middle]), (middle, documents[middle:])):
            half = request.model_copy(update={"inputs": some})
            outcomes += await self._examined(half, mode, caller, job_id, journal, _from(first, finish))
        return outcomes


def _from(first: int, finish: Finish) -> Finish:
    """`finish` for the documents from number `first` on."""
    return lambda index, result, skipped_keys: finish(first + index, result, skipped_keys)


def _result(index: int, document: Document, outcome: DetectionResult | ServiceError) -> JobResult:
    name = document.id or str(index)
    if isinstance(outcome, ServiceError):
        error = DocumentError(code=outcome.code, message=outcome.message)
        return JobResult(index=index, id=name, error=error)
    if outcome.error is not None:
        return JobResult(index=index, id=name, error=outcome.error)
    return JobResult(index=index, id=name, result=outcome)
