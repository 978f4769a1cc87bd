"""Manifests and labels in texts: set apart before they are examined, and said beside the result."""

from functools import partial

from ttmark.detect_service.features.manifests.manifest_examiner import (
    Found,
    ManifestExaminer,
    with_manifests,
)
from ttmark.detect_service.features.manifests.manifest_stripping import PartedRequest, parted
from ttmark.detect_service.question import Gate, Question
from ttmark.detect_service.stage import Companion, VerdictStage
from ttmark.shared.labels import Label
from ttmark.shared.manifests.wrapper import BEGINNING, WRAPPER
from ttmark.shared.schemas.detection.detect import Basis, DetectionRequest, DetectionResult

NAME = "manifests"


def stage_of(examiner: ManifestExaminer, label: Label | None = None) -> VerdictStage:
    """Manifests are told with what `examiner` says of them.

    Args:
        label: what generated texts carry visibly, and is none of the model's words; None: they carry nothing.
    """
    held = [BEGINNING] if label is None else [BEGINNING, label.words]
    return VerdictStage(
        NAME,
        inserts={BEGINNING: WRAPPER},
        joins=lambda question, _, gate: TextsSetApart(examiner, label, question, gate),
        held=held,
    )


class TextsSetApart(Companion):
    """A question some of whose texts hold a manifest or the label."""

    _parts: PartedRequest
    _found: Found

    def __init__(
        self, examiner: ManifestExaminer, label: Label | None, question: Question, gate: Gate
    ) -> None:
        self._examiner = examiner
        self._label = label
        self._words = question.words
        self._gate = gate

    async def prepare(self, request: DetectionRequest) -> DetectionRequest:
        self._parts = await self._gate.read(partial(parted, request, self._label))
        return self._parts.visible

    async def verify(self) -> None:
        texts, owner, examiner = self._parts.texts, self._gate.owner, self._examiner
        self._found = await (examiner.examined(texts) if owner is None else examiner.examine(texts, owner))

    def finish(self, index: int, result: DetectionResult) -> DetectionResult:
        """With manifests, and places in the text as it was sent. Raises what came up when it was examined."""
        failure, manifests = self._parts.failed.get(index), self._found.get(index)
        if failure is not None:
            raise failure
        if isinstance(manifests, BaseException):
            raise manifests
        if manifests is None:
            return result
        result = self._parts.placed(index, result)
        if not manifests:
            return result
        alone = result.verdict != "watermarked" and any(one.says_generated for one in manifests)
        message = result.message and with_manifests(result.message, manifests, alone=alone, words=self._words)
        changed: dict[str, object] = {"metadata": list(manifests), "message": message}
        if alone:
            changed["basis"] = Basis.METADATA
        return result.model_copy(update=changed)


STAGE = stage_of(ManifestExaminer(None))
