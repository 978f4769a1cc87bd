"""What is spent of documents counts no more, for callers who see verdicts alone."""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.cascade import FIRST_SHARE, SECOND_SHARE
from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.examination import Examination
from ttmark.detect_service.features.spent.refusals import no_verdict
from ttmark.detect_service.features.spent.spending import Spending
from ttmark.detect_service.features.spent.spent_document import Counted, Memory, SpentDocument
from ttmark.detect_service.question import Gate, Question
from ttmark.detect_service.stage import Companion, Readings, VerdictStage
from ttmark.detect_service.verdict import Best, Decision, DocumentFinding, best_finding, best_reading, decide
from ttmark.shared.keys.held_keys import ForeignKey, UnlockedKey
from ttmark.shared.limits.counting_filter import Refusal
from ttmark.shared.schemas.detection.detect import CombinedRequest, DetectionResult, DocumentError
from ttmark.shared.watermark.null_replacement import Redrawn

NAME = "spent"


def stage_of(spending: Spending | None) -> VerdictStage:
    """Counts the documents of callers who see verdicts alone; None, and without this feature: none is."""
    if spending is None:
        return VerdictStage(NAME)
    return VerdictStage(
        NAME, joins=lambda question, _, gate: SpentQuestion(spending, question, gate), guards=True
    )


class SpentQuestion(Companion):
    """A question whose documents are counted."""

    examination: Examination
    counted: Counted

    def __init__(self, spending: Spending, question: Question, gate: Gate) -> None:
        self._spending = spending
        self._question = question
        self._gate = gate
        self._withheld: dict[int, Refusal] = {}
        self._before: dict[int, Memory | None] = {}

    async def count(self) -> None:
        self.counted = await self._spending.ask(
            self.examination, self._question.caller, self._gate.read, self._question.asker
        )

    async def close(self) -> None:
        await self._spending.close(self._question.caller, self.counted, self._question.asker)

    def read(self, index: int) -> Sequence[DocumentReader] | DocumentError | DetectionResult:
        asked, request = self.counted.documents[index], self.examination.request
        if asked.standing.refusal is not None:
            is_told = not (isinstance(request, CombinedRequest) and request.conversation)
            return self._refused(index, asked.standing.refusal, is_told=is_told)
        if isinstance(asked.unread, BaseException):
            raise asked.unread
        return asked.rows.readers if asked.unread is None else asked.unread

    def redrawn(self, index: int, place: int, key: UnlockedKey) -> Redrawn | None:
        return self.counted.documents[index].redrawn(key)[place]

    def left_out(
        self, index: int, reader: DocumentReader, key: ForeignKey, row_tokens: int
    ) -> NDArray[np.bool_]:
        return self.counted.documents[index].spent_tokens(reader, key, row_tokens)

    def decide(self, index: int, finding: DocumentFinding | None, decision: Decision) -> Decision:
        asked, own = self.counted.documents[index], self.examination.selection.own
        if finding is None or decision.verdict == "watermarked":
            return decision
        self._before[index] = asked.found_before(own)
        if self._before[index] is not None:
            return Decision("watermarked", None)
        withheld, self._before[index] = asked.unseen(finding, own)
        if withheld is not None:
            self._withheld[index] = withheld
        return decision

    def tell(
        self, index: int, result: DetectionResult, found: Best | None, readings: Readings
    ) -> DetectionResult:
        asked, is_found = self.counted.documents[index], result.verdict == "watermarked"
        if index in self._withheld and not is_found:
            return self._refused(index, self._withheld[index])
        if index in self._withheld:  # of our own mark nothing is said, whatever another scheme's says
            of_scheme = {**result.verdict_of_scheme, "": "no_verdict"}
            result = result.model_copy(update={"verdict_of_scheme": of_scheme})
        if found is not None:
            self._remember(asked, *found, readings, found=is_found)
        return asked.described(result, self._before.get(index))

    def record(self, index: int) -> dict[str, object]:
        spent = self.counted.documents[index].named(self.examination.selection.own)
        return {} if spent is None else {"spent": spent}

    def _refused(self, index: int, refusal: Refusal, *, is_told: bool = True) -> DetectionResult:
        if is_told:
            self.counted.reasons.append(refusal.reason)
        examination = self.examination
        return no_verdict(
            examination.name(index), refusal, self.counted.rule, examination.words, examination.kind
        )

    def _remember(
        self, asked: SpentDocument, best: int, finding: DocumentFinding, readings: Readings, *, found: bool
    ) -> None:
        """Keeps what was said of rows about to be spent.

        What another system's mark, or a memory, made a finding of is kept as neither.
        """
        memories, request = self.counted.memories, self.examination.request
        if found and decide(finding, request.fpr).verdict == "watermarked":
            kept = asked.about_to_be_spent(best, finding.key, time.time(), finding)
            if kept is not None:
                spread = self._suffices(asked, best, finding, kept[1], readings)
                memories.append(replace(kept[0], spread=spread))
        elif not found:
            missed: dict[bytes, Memory] = {}  # keys that read alike have the same rows
            for index in range(len(asked.rows.readers)):
                for key in self.examination.selection.own:
                    kept = asked.about_to_be_spent(index, key, time.time(), None)
                    if kept is not None:
                        missed.setdefault(kept[0].names.tobytes(), kept[0])
            memories += missed.values()

    def _suffices(
        self, asked: SpentDocument, index: int, finding: DocumentFinding, kept: Redrawn, readings: Readings
    ) -> bool:
        """Whether what is kept of reading number `index` would be found by itself under the finding's key."""
        examination = self.examination
        selection, fpr = examination.selection, examination.request.fpr
        rows = asked.without_the_best_tenth(kept, finding, index)
        reader = asked.rows.readers[index]
        by_model = examination.reading(reader, readings)(finding.key) is not None
        share = 1.0
        if examination.has_two_steps(asked.rows.readers):
            share = SECOND_SHARE if by_model else FIRST_SHARE
        detector = examination.detector(reader, share, readings)
        own = [(key, version) for key, version in selection.tries if key is finding.key]
        others = selection.versions - len(own)
        alone = best_finding(reader.token_ids, own, detector, others, lambda _: rows)
        if alone is None:
            return False
        _, again = best_reading([alone], [reader.weight], fpr)
        return decide(again, fpr * share).verdict == "watermarked"
