"""Works on parts of jobs, one at a time: claim, examine, answer."""

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import structlog

from ttmark.detect_service.api.detection_metrics import DetectionMetrics
from ttmark.detect_service.api.journal import Journal
from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.detection import detect
from ttmark.detect_service.examination import Finish
from ttmark.detect_service.failures import log_fault
from ttmark.detect_service.fair_work.fair_queue import FairQueue, QueueFull
from ttmark.detect_service.jobs.job_metrics import JobMetrics
from ttmark.detect_service.jobs.job_store import Claim, PartAnswer
from ttmark.detect_service.jobs.jobs import Jobs
from ttmark.detect_service.jobs.sealing import JobHead, open_head
from ttmark.detect_service.manifests.examiner import ManifestExaminer
from ttmark.detect_service.manifests.metadata import with_manifests_of
from ttmark.detect_service.questions import permitted
from ttmark.detect_service.spending import Spending
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.auth import check_scope
from ttmark.shared.http.service_errors import InternalError, ServiceError, Unauthorized
from ttmark.shared.schemas.detection import DetectionRequest, DetectionResult, Document, DocumentError
from ttmark.shared.schemas.jobs import JobResult
from ttmark.shared.vault.audit import AuditSink
from ttmark.shared.vault.key_store_errors import InvalidToken, KeyStoreError

ROUTE = "/v1/detect/jobs"
# A part whose workers died so often is answered with errors: one of its documents may be why.
MOST_ATTEMPTS = 5
_IDLE_SECONDS = 1.0
_FAILED_SECONDS = 5.0
_REFUSED_DOCUMENT = (413, 422)


class JobWorker:
    """One of the workers of a process.

    Args:
        queue: where the work is done, in the background.
        examiner: verifies manifests; None: they are found and not examined.
        ready: whether keys are in hand; nothing is claimed without.
        spending: counts the documents of tokens that see verdicts alone; None: nothing is counted.
    """

    def __init__(
        self,
        jobs: Jobs,
        backend: DetectionBackend,
        queue: FairQueue,
        metrics: JobMetrics,
        detection: DetectionMetrics,
        audit: AuditSink,
        *,
        ready: Callable[[], bool],
        examiner: ManifestExaminer | None = None,
        spending: Spending | None = None,
    ) -> None:
        self._jobs = jobs
        self._backend = backend
        self._queue = queue
        self._metrics = metrics
        self._detection = detection
        self._audit = audit
        self._examiner = examiner or ManifestExaminer(None)
        self._ready = ready
        self._spending = spending
        self._name = uuid.uuid4().hex
        self._log = structlog.get_logger("ttmark.jobs")

    async def run(self) -> None:
        """Works until it is cancelled; a part that it had is then free at once."""
        while True:
            try:
                if not (self._ready() and await self.work_once()):
                    await asyncio.sleep(_IDLE_SECONDS)
            except Exception as error:
                # The name alone: a message may hold what a document says.
                self._log.warning("job_work_failed", error=type(error).__name__)
                await asyncio.sleep(_FAILED_SECONDS)

    async def work_once(self) -> bool:
        """Works on one part, if there is one.

        Raises:
            KeyStoreError: a store is away, or the part does not open; another worker gets it later.
        """
        claim = await self._jobs.store.claim(self._name)
        if claim is None:
            return False
        if claim.attempt > 1:
            self._metrics.repeated_parts.inc()
        working = asyncio.create_task(self._work(claim))
        try:
            while True:
                await asyncio.wait({working}, timeout=self._jobs.store.lease_seconds / 3)
                if working.done():
                    working.result()
                    return True
                if not await self._jobs.store.renew(claim):
                    return True  # deleted, or another worker has it
        except asyncio.CancelledError:
            with suppress(KeyStoreError):
                await self._jobs.store.release(claim)
            raise
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def _work(self, claim: Claim) -> None:
        opened = await open_head(self._jobs.kek, claim.job.job_id, claim.job.head)
        documents = opened.seal.open_documents(claim.part, claim.documents)
        if claim.attempt > MOST_ATTEMPTS:
            died = InternalError("The processes that examined this document and those beside it ended.")
            outcomes: Sequence[DetectionResult | ServiceError] = [died] * len(documents)
        else:
            outcomes = await self._outcomes(claim, opened.head, documents)
        first = claim.part * opened.head.part_documents
        results = [
            _result(index, document, outcome)
            for index, (document, outcome) in enumerate(zip(documents, outcomes, strict=True), first)
        ]
        failed = sum(result.error is not None for result in results)
        now = time.time()
        answer = PartAnswer(
            results=opened.seal.results(claim.part, results),
            answered=len(results),
            failed=failed,
            now=now,
            expires_at=now + self._jobs.limits.keep_seconds,
            calls=opened.head.options.webhook is not None,
        )
        if await self._jobs.store.answer(claim, answer):
            self._metrics.documents.labels("answered").inc(len(results) - failed)
            self._metrics.documents.labels("failed").inc(failed)

    async def _outcomes(
        self, claim: Claim, head: JobHead, documents: list[Document]
    ) -> Sequence[DetectionResult | ServiceError]:
        try:
            caller = await self._jobs.current(head.token_id)
            check_scope(caller, Scope.DETECT)
            request = permitted(head.options.request(documents), caller)
        except InvalidToken:
            error = Unauthorized("The access token that made this job is no longer valid.")
            return [error] * len(documents)
        except ServiceError as error:
            return [error] * len(documents)
        journal = Journal(head.options.mode, self._detection, ROUTE)
        parts = await self._examiner.part(request, self._backend.label)
        manifests = await self._examiner.examined(parts.texts)

        def finish(index: int, result: DetectionResult, _: Sequence[str]) -> DetectionResult:
            return with_manifests_of(index, result, parts, manifests)

        mode = head.options.mode
        outcomes = await self._examined(parts.visible, mode, caller, claim.job.job_id, journal, finish)
        journal.close(caller, claim.job.job_id, self._audit)
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
            return await self._queue.run(caller.tenant, cost, work, background=True)

        counted = None
        try:
            if self._spending is not None and not caller.sees_evidence:
                counted = await self._spending.ask(request, mode, caller, run)
            results = await run(
                lambda: detect(request, caller, self._backend, job_id, journal, finish, counted).results
            )
            if self._spending is not None and counted is not None:
                await self._spending.close(caller, counted)
            return list(results)
        except QueueFull:
            await asyncio.sleep(_IDLE_SECONDS)
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
