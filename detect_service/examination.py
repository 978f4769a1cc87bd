"""What one request asks of each of its documents: read, detect, decide, report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.best_reading import best_reading
from ttmark.detect_service.cost import check_cost, request_cost
from ttmark.detect_service.decision import Decision, decide
from ttmark.detect_service.detectors import Tokens
from ttmark.detect_service.document_limits import RefusedDocument, check_size, too_many_tokens
from ttmark.detect_service.failures import is_fault, not_examined, refused
from ttmark.detect_service.foreign_detector import foreign_findings
from ttmark.detect_service.foreign_results import with_foreign
from ttmark.detect_service.key_selection import KeySelection
from ttmark.detect_service.pipeline import Finding, best_findings
from ttmark.detect_service.reader import DocumentReader
from ttmark.detect_service.requested_detector import detector_for
from ttmark.detect_service.results import verdict_only, with_evidence
from ttmark.shared.detection_words import message
from ttmark.shared.http.service_errors import TooLarge
from ttmark.shared.keys.unlocked import HeldKey
from ttmark.shared.schemas.detection import (
    AlignedRequest,
    CombinedRequest,
    DetectionRequest,
    DetectionResult,
    DocumentError,
)
from ttmark.shared.schemas.detection_combined import CombinedResult
from ttmark.shared.tokenization import TooManyTokens
from ttmark.shared.watermark.detectors.aligned import BETA
from ttmark.shared.watermark.pauses import pause

Outcome = tuple[DetectionResult, Finding | None]


Finish = Callable[[int, DetectionResult, Sequence[str]], DetectionResult]
"""Completes the result of document number so and so, of a request that skipped these keys."""


@dataclass(frozen=True, slots=True)
class Examination:
    """A request whose keys are selected.

    Attributes:
        shows_evidence: whether the caller may see more than the verdict.
        finish: asked for each document; None: nothing is added.
    """

    request: DetectionRequest
    backend: DetectionBackend
    selection: KeySelection
    shows_evidence: bool
    finish: Finish | None

    def outcomes(self) -> list[Outcome]:
        """The result of each document, with the evidence for it: None where no key had a version to try.

        Documents are examined together. Where that fails inside, each is examined by itself: those that fail
        again are `not_examined`, and the others have the results that they have without them. So is one that
        is too long, among others.

        Raises:
            ServiceError: the only document is too long, or there is more work than a request may ask for.
        """
        count = len(self.request.inputs)
        try:
            return self._examined(range(count))
        except BaseException as error:
            if not is_fault(error):
                raise
        return [self._alone(index) for index in range(count)]

    def _alone(self, index: int) -> Outcome:
        try:
            (outcome,) = self._examined(range(index, index + 1))
        except BaseException as error:
            if not is_fault(error):
                raise
            return not_examined(self._name(index), error, self._kind), None
        return outcome

    def _examined(self, places: range) -> list[Outcome]:
        """The outcomes of the documents at some places."""
        outcomes: dict[int, Outcome] = {}
        readings: dict[int, list[DocumentReader]] = {}
        for index in places:
            read = self._read(index)
            if isinstance(read, DocumentError):
                outcomes[index] = refused(self._name(index), read, self._kind), None
            else:
                readings[index] = read
        readers = [reader for of_document in readings.values() for reader in of_document]

        def token_ids(key: HeldKey) -> list[Tokens]:
            return [reader.token_ids(key) for reader in readers]

        self._check_cost(readers, token_ids)
        detector = detector_for(self.request, [one.document for one in readers], self.selection.versions)
        others = sum(len(key.detectable) for key in self.selection.foreign)
        findings = iter(best_findings(token_ids, self.selection.own, detector, others) or ())
        for index, of_document in readings.items():
            pause()
            outcomes[index] = self._outcome(index, of_document, list(islice(findings, len(of_document))))
        return [outcomes[index] for index in places]

    def _read(self, index: int) -> list[DocumentReader] | DocumentError:
        """Document number `index`, its tokens read under all keys; or why it is not, if there are others."""
        pause()
        document, most = self.request.inputs[index], self.backend.max_document_tokens
        if isinstance(document, RefusedDocument):
            return document.refusal
        try:
            check_size(index, document, most)
            readings = DocumentReader.readings(
                document,
                self.backend.tokenizers,
                self.backend.normalizer,
                normalize=self.request.normalize,
                most=most,
            )
            for reader in readings:
                for key in self.selection.keys:
                    reader.token_ids(key)
        except (TooLarge, TooManyTokens) as error:
            if isinstance(error, TooManyTokens):
                error = too_many_tokens(index, most)
            if len(self.request.inputs) == 1:
                raise error from None
            return DocumentError(code=error.code, message=error.message)
        return readings

    def _check_cost(
        self, readers: Sequence[DocumentReader], token_ids: Callable[[HeldKey], list[Tokens]]
    ) -> None:
        # Known now to the token; before the texts were read it was estimated.
        limit = self.backend.max_request_blocks
        if limit:
            keys = self.selection.keys
            lengths = {key.key_id: [tokens.size for tokens in token_ids(key)] for key in keys}
            documents = [reader.document for reader in readers]
            check_cost(request_cost(self.request, documents, keys, lambda key: lengths[key.key_id]), limit)

    def _outcome(
        self, index: int, readers: Sequence[DocumentReader], of_readings: Sequence[Finding]
    ) -> Outcome:
        request, selection = self.request, self.selection
        best, finding = best_reading(of_readings, request.fpr) if of_readings else (0, None)
        decision = decide(finding, request.fpr)
        result = self._verdict(index, readers[0], finding, decision)
        if finding is not None and self.shows_evidence:
            beta = request.beta if isinstance(request, AlignedRequest) else BETA
            block_beta = beta if request.evidence == "blocks" else None
            result = with_evidence(result, finding, readers[best], request.fpr, block_beta=block_beta)
        result = with_foreign(
            result,
            request,
            decision if selection.own else None,
            foreign_findings(request, selection.foreign, readers, selection.versions),
            evidence=self.shows_evidence,
        )
        result = result.model_copy(update={"message": message(result, request.fpr)})
        if self.finish is not None:
            result = self.finish(index, result, selection.skipped)
        return result, finding

    def _verdict(
        self, index: int, as_sent: DocumentReader, finding: Finding | None, decision: Decision
    ) -> DetectionResult:
        # Which key came closest is evidence, which counts its tokens; everybody is told those of the first.
        first = (self.selection.own or self.selection.keys)[0]
        return verdict_only(
            self._name(index),
            len(as_sent.token_ids(first)),
            finding,
            decision,
            as_sent.normalization(undone=self.request.normalize),
            self._kind,
        )

    @property
    def _kind(self) -> type[DetectionResult]:
        return CombinedResult if isinstance(self.request, CombinedRequest) else DetectionResult

    def _name(self, index: int) -> str:
        name = self.request.inputs[index].id
        return str(index) if name is None else name
