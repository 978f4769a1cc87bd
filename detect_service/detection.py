"""One detection request, from body to response: select keys, read, detect, decide, report."""

import math
from collections.abc import Sequence
from typing import Protocol

from detect_service.backend import DetectionBackend
from detect_service.decision import decide
from detect_service.detectors import BatchDetector, Tokens
from detect_service.direct_detector import direct
from detect_service.key_selection import select_keys
from detect_service.pipeline import Finding, best_findings
from detect_service.position_detectors import aligned, localized
from detect_service.reader import DocumentReader
from detect_service.results import verdict_only, with_evidence
from shared.http.auth import check_scope
from shared.http.errors import TooLarge
from shared.keys import Principal, Scope, UnlockedKey
from shared.schemas.detection import (
    AlignedRequest,
    DetectionRequest,
    DetectionResponse,
    DetectionResult,
    DirectRequest,
    LocalizedRequest,
)


class DetectionObserver(Protocol):
    """Hears how a request goes."""

    def keys(self, keys: Sequence[UnlockedKey]) -> None:
        """The keys that are tried."""

    def document(self, result: DetectionResult, finding: Finding | None) -> None:
        """A document's result and the evidence for it; None where no key had a version to try."""


def detector_for(request: DetectionRequest, versions: int) -> BatchDetector:
    """The detector with the request's options, when `versions` key versions are tried on each document."""
    match request:
        case DirectRequest():
            return direct(request.phase)
        case AlignedRequest():
            return aligned(request.beta)
        case LocalizedRequest():
            limit = math.log10(request.fpr) - math.log10(max(1, versions))
            return localized(request.method, limit)
        case _:
            raise TypeError(f"no detector for {type(request).__name__}")


def detect(
    request: DetectionRequest,
    principal: Principal,
    backend: DetectionBackend,
    request_id: str,
    observer: DetectionObserver | None = None,
) -> DetectionResponse:
    """Examines every document; the request's type chooses the detector.

    `observer` is told every result, with the evidence whether the caller may see it or not.

    Raises:
        ServiceError: unknown key, missing tokenizer, missing scope, or a document that is too long.
    """
    if request.evidence == "blocks":
        check_scope(principal, Scope.DETECT_EVIDENCE)
    selection = select_keys(request, principal.tenant, backend.keys, backend.tokenizers)
    if observer is not None:
        observer.keys(selection.keys)
    readers = [
        DocumentReader(document, backend.tokenizers, backend.normalizer, undo_tricks=request.normalize)
        for document in request.inputs
    ]

    def token_ids(key: UnlockedKey) -> list[Tokens]:
        return [_checked(index, reader.token_ids(key), backend) for index, reader in enumerate(readers)]

    detector = detector_for(request, sum(len(key.detectable) for key in selection.keys))
    findings = best_findings(token_ids, selection.keys, detector)
    shows_evidence = Scope.DETECT_EVIDENCE in principal.scopes
    results = []
    for index, reader in enumerate(readers):
        finding = findings[index] if findings else None
        tokens = len(reader.token_ids(finding.key if finding else selection.keys[0]))
        results.append(_result(index, request, reader, tokens, finding, shows_evidence))
        if observer is not None:
            observer.document(results[-1], finding)
    return DetectionResponse(results=results, skipped_keys=list(selection.skipped), request_id=request_id)


def _checked(index: int, tokens: Tokens, backend: DetectionBackend) -> Tokens:
    if len(tokens) > backend.max_document_tokens:
        raise TooLarge(
            f"Document {index} has {len(tokens)} tokens; the limit is {backend.max_document_tokens}.",
            param=f"inputs[{index}]",
        )
    return tokens


def _result(
    index: int,
    request: DetectionRequest,
    reader: DocumentReader,
    tokens: int,
    finding: Finding | None,
    shows_evidence: bool,
) -> DetectionResult:
    document_id = request.inputs[index].id
    result = verdict_only(
        str(index) if document_id is None else document_id,
        tokens,
        finding,
        decide(finding, request.fpr),
        reader.normalization,
    )
    if finding is None or not shows_evidence:
        return result
    return with_evidence(result, finding, reader, blocks=request.evidence == "blocks")
