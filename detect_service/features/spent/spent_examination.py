"""The examination of documents for callers who see verdicts alone: what is spent of them counts no more."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from ttmark.detect_service.cascade import FIRST_SHARE, SECOND_SHARE
from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.documents.documents_without_verdict import no_verdict
from ttmark.detect_service.examination import Best, Examination, Readings
from ttmark.detect_service.features.spent.spent_document import Counted, Memory, SpentDocument
from ttmark.detect_service.verdict import Decision, Finding, best_finding, best_reading, decide
from ttmark.shared.limits.counting_filter import Refusal
from ttmark.shared.schemas.detection import DetectionResult, DocumentError
from ttmark.shared.watermark.null_replacement import Redrawn


@dataclass(slots=True)
class SpentExamination(Examination):
    """An `Examination` of documents that were counted.

    Attributes:
        counted: the documents; None: nothing of them is spent.
    """

    counted: Counted | None = None
    _withheld: dict[int, Refusal] = field(default_factory=dict)
    _before: dict[int, Memory | None] = field(default_factory=dict)

    def _readers(self, index: int) -> Sequence[DocumentReader]:
        asked = self._asked(index)
        if asked is None or asked.standing.refusal is None:
            return Examination._readers(self, index)
        self._outcomes[index] = self._refused(index, asked.standing.refusal), None
        return ()

    def _read(self, index: int) -> Sequence[DocumentReader] | DocumentError:
        asked = self._asked(index)
        if asked is None:
            return Examination._read(self, index)
        if isinstance(asked.unread, BaseException):
            raise asked.unread
        return asked.rows.readers if asked.unread is None else asked.unread

    def _asked(self, index: int) -> SpentDocument | None:
        return self.counted.documents[index] if self.counted else None

    def _decision(self, index: int, finding: Finding | None) -> Decision:
        decision, asked = Examination._decision(self, index, finding), self._asked(index)
        if asked is None or finding is None or decision.verdict == "watermarked":
            return decision
        self._before[index] = asked.found_before(self.selection.own)
        if self._before[index] is not None:
            return Decision("watermarked", None)
        withheld, self._before[index] = asked.unseen(finding, self.selection.own)
        if withheld is not None:
            self._withheld[index] = withheld
        return decision

    def _told(
        self, index: int, result: DetectionResult, found: Best | None, readings: Readings
    ) -> DetectionResult:
        asked, is_found = self._asked(index), result.verdict == "watermarked"
        if asked is not None:
            if index in self._withheld and not is_found:
                return self._refused(index, self._withheld[index])
            if index in self._withheld:  # of our own mark nothing is said, whatever another scheme's says
                of_scheme = {**result.verdict_of_scheme, "": "no_verdict"}
                result = result.model_copy(update={"verdict_of_scheme": of_scheme})
            if found is not None:
                self._remember(asked, *found, readings, found=is_found)
            result = asked.described(result, self._before.get(index))
        return Examination._told(self, index, result, found, readings)

    def _refused(self, index: int, refusal: Refusal) -> DetectionResult:
        counted = cast(Counted, self.counted)
        counted.reasons.append(refusal.reason)
        return no_verdict(self._name(index), refusal, counted.rule, self.words, self._kind)

    def _remember(
        self, asked: SpentDocument, best: int, finding: Finding, readings: Readings, *, found: bool
    ) -> None:
        """Keeps what was said of rows about to be spent.

        What another system's mark, or a memory, made a finding of is kept as neither.
        """
        memories = self.counted.memories if self.counted else []
        if found and decide(finding, self.request.fpr).verdict == "watermarked":
            kept = asked.about_to_be_spent(best, finding.key, time.time(), finding)
            if kept is not None:
                spread = self._suffices(asked, best, finding, kept[1], readings)
                memories.append(replace(kept[0], spread=spread))
        elif not found:
            missed: dict[bytes, Memory] = {}  # keys that read alike have the same rows
            for index in range(len(asked.rows.readers)):
                for key in self.selection.own:
                    kept = asked.about_to_be_spent(index, key, time.time(), None)
                    if kept is not None:
                        missed.setdefault(kept[0].names.tobytes(), kept[0])
            memories += missed.values()

    def _suffices(
        self, asked: SpentDocument, index: int, finding: Finding, kept: Redrawn, readings: Readings
    ) -> bool:
        """Whether what is kept of reading number `index` would be found by itself under the finding's key."""
        rows = asked.without_the_best_tenth(kept, finding, index)
        reader = asked.rows.readers[index]
        by_model = self._reading(reader, readings)(finding.key) is not None
        share = (
            (SECOND_SHARE if by_model else FIRST_SHARE) if self._has_two_steps(asked.rows.readers) else 1.0
        )
        detector = self._detector(reader, share, readings)
        own = [(key, version) for key, version in self.selection.tries if key is finding.key]
        others = self.selection.versions - len(own)
        alone = best_finding(reader.token_ids, own, detector, others, lambda _: rows)
        if alone is None:
            return False
        _, again = best_reading([alone], [reader.weight], self.request.fpr)
        return decide(again, self.request.fpr * share).verdict == "watermarked"
