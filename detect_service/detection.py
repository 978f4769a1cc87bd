"""One detection request, from body to response: select keys, read, detect, decide, report."""

import math
from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.best_reading import best_reading
from ttmark.detect_service.combined_detector import combined
from ttmark.detect_service.cost import check_cost, request_cost
from ttmark.detect_service.decision import Decision, decide
from ttmark.detect_service.detectors import BatchDetector, Tokens
from ttmark.detect_service.direct_detector import direct
from ttmark.detect_service.foreign_detector import foreign_findings
from ttmark.detect_service.foreign_results import with_foreign
from ttmark.detect_service.key_selection import select_keys
from ttmark.detect_service.pipeline import Finding, best_findings
from ttmark.detect_service.position_detectors import aligned, localized
from ttmark.detect_service.reader import DocumentReader
from ttmark.detect_service.results import verdict_only, with_evidence
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.detection_words import message
from ttmark.shared.http.auth import check_scope
from ttmark.shared.http.service_errors import TooLarge
from ttmark.shared.keys.unlocked import HeldKey
from ttmark.shared.schemas.detection import (
    AlignedRequest,
    CombinedRequest,
    DetectionRequest,
    DetectionResponse,
    DetectionResult,
    DirectRequest,
    Document,
    LocalizedRequest,
    usual_phase,
)
from ttmark.shared.schemas.detection_combined import CombinedResponse, CombinedResult
from ttmark.shared.watermark.detectors.aligned import BETA
from ttmark.shared.watermark.pauses import pause


class DetectionObserver(Protocol):
    """Hears how a request goes."""

    def keys(self, keys: Sequence[HeldKey]) -> None:
        """The keys that are tried."""

    def document(self, result: DetectionResult, finding: Finding | None) -> None:
        """A document's result and the evidence for it; None where no key had a version to try."""


def detector_for(request: DetectionRequest, documents: Sequence[Document], versions: int) -> BatchDetector:
    """The detector with the request's options, when `versions` key versions are tried on each document."""
    limit = math.log10(request.fpr) - math.log10(max(1, versions))
    match request:
        case DirectRequest():
            return direct([request.phase_of(document) for document in documents], limit)
        case AlignedRequest():
            return aligned(request.beta, limit)
        case LocalizedRequest():
            return localized(request.method, limit)
        case CombinedRequest():
            return combined([usual_phase(document) for document in documents], limit)
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
        ServiceError: unknown key, missing tokenizer, missing scope, a document that is too long, or more work
            than a request may ask for.
    """
    if request.evidence == "blocks":
        check_scope(principal, Scope.DETECT_EVIDENCE)
    selection = select_keys(request, principal.tenant, backend.keys, backend.tokenizers)
    if observer is not None:
        observer.keys(selection.keys)
    readings = []
    for document in request.inputs:
        pause()
        readings.append(
            DocumentReader.readings(
                document, backend.tokenizers, backend.normalizer, normalize=request.normalize
            )
        )

    def token_ids(key: HeldKey) -> list[Tokens]:
        return [
            _checked(index, reader.token_ids(key), backend)
            for index, readers in enumerate(readings)
            for reader in readers
        ]

    documents = [reader.document for readers in readings for reader in readers]
    if backend.max_request_blocks:  # known now to the token; before the texts were read it was estimated
        lengths = {key.key_id: [tokens.size for tokens in token_ids(key)] for key in selection.keys}
        blocks = request_cost(request, documents, selection.keys, lambda key: lengths[key.key_id])
        check_cost(blocks, backend.max_request_blocks)
    for key in selection.foreign:
        token_ids(key)
    detector = detector_for(request, documents, selection.versions)
    others = sum(len(key.detectable) for key in selection.foreign)
    findings = iter(best_findings(token_ids, selection.own, detector, others) or ())
    shows_evidence = principal.sees_evidence
    results = []
    for index, readers in enumerate(readings):
        pause()
        of_readings = list(islice(findings, len(readers)))
        best, finding = best_reading(of_readings, request.fpr) if of_readings else (0, None)
        # Which key came closest is evidence: others are told the tokens of the first.
        shown = finding.key if finding and shows_evidence else (selection.own or selection.keys)[0]
        decision = decide(finding, request.fpr)
        result = _verdict(index, request, readers[0], shown, finding, decision)
        if finding is not None and shows_evidence:
            beta = request.beta if isinstance(request, AlignedRequest) else BETA
            block_beta = beta if request.evidence == "blocks" else None
            result = with_evidence(result, finding, readers[best], request.fpr, block_beta=block_beta)
        result = with_foreign(
            result,
            request,
            decision if selection.own else None,
            foreign_findings(request, selection.foreign, readers, selection.versions),
            evidence=shows_evidence,
        )
        results.append(result.model_copy(update={"message": message(result, request.fpr)}))
        if observer is not None:
            observer.document(results[-1], finding)
    combined_results = [result for result in results if isinstance(result, CombinedResult)]
    skipped = list(selection.skipped)
    if isinstance(request, CombinedRequest):
        return CombinedResponse(results=combined_results, skipped_keys=skipped, request_id=request_id)
    return DetectionResponse(results=results, skipped_keys=skipped, request_id=request_id)


def _checked(index: int, tokens: Tokens, backend: DetectionBackend) -> Tokens:
    pause()
    if len(tokens) > backend.max_document_tokens:
        raise TooLarge(
            f"Document {index} has {len(tokens)} tokens; the limit is {backend.max_document_tokens}.",
            param=f"inputs[{index}]",
        )
    return tokens


def _verdict(
    index: int,
    request: DetectionRequest,
    as_sent: DocumentReader,
    first: HeldKey,
    finding: Finding | None,
    decision: Decision,
) -> DetectionResult:
    document_id = request.inputs[index].id
    return verdict_only(
        str(index) if document_id is None else document_id,
        len(as_sent.token_ids(finding.key if finding else first)),
        finding,
        decision,
        as_sent.normalization(undone=request.normalize),
        CombinedResult if isinstance(request, CombinedRequest) else DetectionResult,
    )
