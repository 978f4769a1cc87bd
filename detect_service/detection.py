"""One detection request, from body to response: select keys, read, detect, decide, report."""

import math
from collections.abc import Callable
from functools import partial

from detect_service.backend import DetectionBackend
from detect_service.decision import decide
from detect_service.key_selection import KeySelection, select_keys
from detect_service.pipeline import Detector, Tokens, best_finding
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
from shared.watermark import detect_aligned, detect_direct, detect_localized

DetectorFor = Callable[[int], Detector]
"""The detector to use when that many key versions are tried on each document."""


def detector_for(request: DetectionRequest) -> DetectorFor:
    """The core's detector with the request's options."""
    match request:
        case DirectRequest():
            return lambda _: partial(detect_direct, phase=request.phase)
        case AlignedRequest():
            return lambda _: partial(detect_aligned, beta=request.beta)
        case LocalizedRequest():
            limit = math.log10(request.fpr)
            return lambda versions: partial(
                detect_localized, method=request.method, log10_e_limit=limit - math.log10(max(1, versions))
            )
        case _:
            raise TypeError(f"no detector for {type(request).__name__}")


def detect(
    request: DetectionRequest, principal: Principal, backend: DetectionBackend, request_id: str
) -> DetectionResponse:
    """Examines every document; the request's type chooses the detector.

    Raises:
        ServiceError: unknown key, missing tokenizer, missing scope, or a document that is too long.
    """
    shows_evidence = Scope.DETECT_EVIDENCE in principal.scopes
    if request.evidence == "blocks":
        check_scope(principal, Scope.DETECT_EVIDENCE)
    selection = select_keys(request, principal.tenant, backend.keys, backend.tokenizers)
    detector = detector_for(request)(sum(len(key.detectable) for key in selection.keys))
    results = [
        _detect_one(index, request, selection, detector, shows_evidence, backend)
        for index in range(len(request.inputs))
    ]
    return DetectionResponse(results=results, skipped_keys=list(selection.skipped), request_id=request_id)


def _detect_one(
    index: int,
    request: DetectionRequest,
    selection: KeySelection,
    detector: Detector,
    shows_evidence: bool,
    backend: DetectionBackend,
) -> DetectionResult:
    document = request.inputs[index]
    reader = DocumentReader(document, backend.tokenizers, backend.normalizer, undo_tricks=request.normalize)

    def token_ids(key: UnlockedKey) -> Tokens:
        ids = reader.token_ids(key)
        if len(ids) > backend.max_document_tokens:
            raise TooLarge(
                f"Document {index} has {len(ids)} tokens; the limit is {backend.max_document_tokens}.",
                param=f"inputs[{index}]",
            )
        return ids

    finding = best_finding(token_ids, selection.keys, detector)
    document_id = document.id if document.id is not None else str(index)
    tokens = len(token_ids(finding.key if finding else selection.keys[0]))
    result = verdict_only(document_id, tokens, finding, decide(finding, request.fpr), reader.normalization)
    if finding is None or not shows_evidence:
        return result
    return with_evidence(result, finding, reader, blocks=request.evidence == "blocks")
