"""One detection request, from body to response."""

from collections.abc import Sequence
from typing import Protocol

from ttmark.detect_service.asked_document import Counted
from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.examination import Examination, Finish
from ttmark.detect_service.key_selection import select_keys
from ttmark.detect_service.pipeline import Finding
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.auth import check_scope
from ttmark.shared.keys.unlocked import HeldKey
from ttmark.shared.schemas.detection import (
    CombinedRequest,
    DetectionRequest,
    DetectionResponse,
    DetectionResult,
)
from ttmark.shared.schemas.detection_combined import CombinedResponse, CombinedResult


class DetectionObserver(Protocol):
    """Hears how a request goes."""

    def keys(self, keys: Sequence[HeldKey]) -> None:
        """The keys that are tried."""

    def document(self, result: DetectionResult, finding: Finding | None) -> None:
        """A document's result and the evidence for it; None where no key had a version to try."""


def detect(
    request: DetectionRequest,
    principal: Principal,
    backend: DetectionBackend,
    request_id: str,
    observer: DetectionObserver | None = None,
    finish: Finish | None = None,
    counted: Counted | None = None,
) -> DetectionResponse:
    """Examines every document; the request's type chooses the detector.

    A document that fails inside, be it in `finish`, is `not_examined` and costs no other its result.

    Args:
        observer: is told every result, with the evidence whether the caller may see it or not.
        finish: completes each result.
        counted: the documents, where the caller sees verdicts alone; None: nothing of them is spent.

    Raises:
        ServiceError: unknown key, missing tokenizer, missing scope, a document that is too long, or more work
            than a request may ask for.
    """
    if request.evidence == "blocks":
        check_scope(principal, Scope.DETECT_EVIDENCE)
    selection = select_keys(request, principal.tenant, backend.keys, backend.tokenizers)
    if observer is not None:
        observer.keys(selection.keys)
    outcomes = Examination(request, backend, selection, principal.sees_evidence, finish, counted).outcomes()
    if observer is not None:
        for result, finding in outcomes:
            observer.document(result, finding)
    results, skipped = [result for result, _ in outcomes], list(selection.skipped)
    combined_results = [result for result in results if isinstance(result, CombinedResult)]
    if isinstance(request, CombinedRequest):
        return CombinedResponse(results=combined_results, skipped_keys=skipped, request_id=request_id)
    return DetectionResponse(results=results, skipped_keys=skipped, request_id=request_id)
