"""What one request asks of each of its documents: read, detect, decide, report."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from ttmark.detect_service.asked_document import AskedDocument, Counted
from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.best_reading import best_reading
from ttmark.detect_service.cost import check_cost, request_cost
from ttmark.detect_service.decision import Decision, decide
from ttmark.detect_service.detectors import Tokens
from ttmark.detect_service.document_limits import read_document
from ttmark.detect_service.failures import is_fault, no_verdict, not_examined, refused
from ttmark.detect_service.foreign_detector import foreign_findings
from ttmark.detect_service.foreign_results import with_foreign
from ttmark.detect_service.key_selection import KeySelection
from ttmark.detect_service.pipeline import Finding, best_findings
from ttmark.detect_service.reader import DocumentReader
from ttmark.detect_service.requested_detector import detector_for
from ttmark.detect_service.results import verdict_only, with_evidence
from ttmark.shared.detection_words import message
from ttmark.shared.keys.unlocked import HeldKey, UnlockedKey
from ttmark.shared.limits.row_space import Refusal
from ttmark.shared.schemas.detection import (
    AlignedRequest,
    CombinedRequest,
    DetectionRequest,
    DetectionResult,
    DocumentError,
)
from ttmark.shared.schemas.detection_combined import CombinedResult
from ttmark.shared.watermark.detectors.aligned import BETA
from ttmark.shared.watermark.pauses import pause
from ttmark.shared.watermark.redrawn import Redrawn

Outcome = tuple[DetectionResult, Finding | None]


Finish = Callable[[int, DetectionResult, Sequence[str]], DetectionResult]
"""Completes the result of document number so and so, of a request that skipped these keys."""


@dataclass(frozen=True, slots=True)
class Examination:
    """A request whose keys are selected.

    Attributes:
        shows_evidence: whether the caller may see more than the verdict.
        finish: asked for each document; None: nothing is added.
        counted: the documents of a caller who sees verdicts alone; None: nothing of them is spent.
    """

    request: DetectionRequest
    backend: DetectionBackend
    selection: KeySelection
    shows_evidence: bool
    finish: Finish | None
    counted: Counted | None = None

    def outcomes(self) -> list[Outcome]:
        """The result of each document, with the evidence for it: None where no key had a version to try.

        Documents are examined together. Where that fails inside, each is examined by itself: those that fail
        again are `not_examined`, and the others have the results that they have without them. So is one that
        is too long, among others.

        Raises:
            ServiceError: the only document is too long, or there is more work than a request may ask for.
        """
        outcomes: dict[int, Outcome] = {}
        for index, asked in enumerate(self.counted.documents if self.counted else ()):
            if asked.standing.refusal is not None:
                outcomes[index] = self._refused(index, asked, asked.standing.refusal), None
        places = [index for index in range(len(self.request.inputs)) if index not in outcomes]
        if places:
            outcomes |= self._of_all(places)
        return [outcomes[index] for index in range(len(self.request.inputs))]

    def _of_all(self, places: Sequence[int]) -> dict[int, Outcome]:
        try:
            return dict(zip(places, self._examined(places), strict=True))
        except BaseException as error:
            if not is_fault(error):
                raise
        return {index: self._alone(index) for index in places}

    def _alone(self, index: int) -> Outcome:
        try:
            (outcome,) = self._examined([index])
        except BaseException as error:
            if not is_fault(error):
                raise
            return not_examined(self._name(index), error, self._kind), None
        return outcome

    def _examined(self, places: Sequence[int]) -> list[Outcome]:
        """The outcomes of the documents at some places."""
        outcomes: dict[int, Outcome] = {}
        readings: dict[int, Sequence[DocumentReader]] = {}
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

        def redrawn(key: UnlockedKey) -> list[Redrawn | None]:
            return [one for each in map(self._asked, readings) if each for one in each.redrawn(key)]

        drawn = redrawn if self.counted else None
        findings = iter(best_findings(token_ids, self.selection.own, detector, others, drawn) or ())
        for index, of_document in readings.items():
            pause()
            outcomes[index] = self._outcome(index, of_document, list(islice(findings, len(of_document))))
        return [outcomes[index] for index in places]

    def _read(self, index: int) -> Sequence[DocumentReader] | DocumentError:
        """Document number `index`, its tokens read under all keys; or why it is not, if there are others."""
        pause()
        asked = self._asked(index)
        if asked is None:
            return read_document(self.request, index, self.selection.keys, self.backend)
        if asked.failure is not None:
            raise asked.failure
        return asked.rows.readers if asked.too_long is None else asked.too_long

    def _asked(self, index: int) -> AskedDocument | None:
        return self.counted.documents[index] if self.counted else None

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
        decision, withheld, before = decide(finding, request.fpr), None, None
        asked = self._asked(index)
        if asked is not None and finding is not None and decision.verdict != "watermarked":
            before = asked.found_before()
            if before is not None:
                decision = Decision("watermarked", None)
            else:
                withheld, before = asked.unseen(finding, selection.own)
        result = self._verdict(index, readers[0], finding, decision)
        if finding is not None and self.shows_evidence:
            beta = request.beta if isinstance(request, AlignedRequest) else BETA
            block_beta = beta if request.evidence == "blocks" else None
            result = with_evidence(result, finding, readers[best], request.fpr, block_beta=block_beta)
        result = with_foreign(
            result,
            request,
            decision if selection.own else None,
            foreign_findings(request, selection.foreign, readers, selection.versions, asked),
            evidence=self.shows_evidence,
        )
        if asked is not None:
            if withheld is not None and result.verdict != "watermarked":
                return self._refused(index, asked, withheld), None
            if finding is not None:
                self._remember(asked, best, finding, found=result.verdict == "watermarked")
            result = asked.described(result, before)
        result = result.model_copy(update={"message": message(result, request.fpr)})
        if self.finish is not None:
            result = self.finish(index, result, selection.skipped)
        return result, finding

    def _refused(self, index: int, asked: AskedDocument, refusal: Refusal) -> DetectionResult:
        if self.counted:
            self.counted.reasons.append(refusal.reason)
        return no_verdict(self._name(index), refusal, asked.rule, self._kind)

    def _remember(self, asked: AskedDocument, best: int, finding: Finding, *, found: bool) -> None:
        """Keeps what was said of rows about to be spent: a finding, if any nine tenths of them suffice."""
        memories = self.counted.memories if self.counted else []
        for index in range(len(asked.rows.readers)):
            for key in self.selection.own:
                if found and (index, key) != (best, finding.key):
                    continue
                kept = asked.about_to_be_spent(index, key, time.time(), found=found)
                if kept is not None and (not found or self._suffices(asked, index, finding, kept[1])):
                    memories.append(kept[0])

    def _suffices(self, asked: AskedDocument, index: int, finding: Finding, kept: Redrawn) -> bool:
        reader, rows = asked.rows.readers[index], asked.without_the_best_tenth(kept, finding, index)
        detector = detector_for(self.request, [reader.document], self.selection.versions)
        others = self.selection.versions - len(finding.key.detectable)
        tokens = [reader.token_ids(finding.key)]
        alone = best_findings(lambda _: tokens, [finding.key], detector, others, lambda _: [rows]) or []
        _, again = best_reading(alone * len(asked.rows.readers), self.request.fpr)
        return decide(again, self.request.fpr).verdict == "watermarked"

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
