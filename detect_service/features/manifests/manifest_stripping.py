"""Takes manifests and labels, which no model wrote, out of the texts of a request, and finds the way back."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ttmark.shared.labels import Label
from ttmark.shared.manifests.wrapper import Wrapper, wrappers
from ttmark.shared.schemas.detection.detect import (
    BlockEvidence,
    DetectionRequest,
    DetectionResult,
    Document,
    Segment,
)

Spanned = TypeVar("Spanned", Segment, BlockEvidence)


class PartedText:
    """A text, the wrappers in it, and the label at one of its ends.

    Attributes:
        visible: the text without wrappers; signers sign labels, too.
        examined: without wrappers and label.
    """

    def __init__(self, text: str, found: Sequence[Wrapper], label: Label | None) -> None:
        self.wrappers = found
        edges = [0, *(edge for each in found for edge in (each.start, each.end)), len(text)]
        pieces = [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
        self.visible = "".join(pieces)
        self._start, end = label.unlabelled(self.visible) if label else (0, len(self.visible))
        self.examined = self.visible[self._start : end]
        self._before: list[int] = []  # visible characters before each wrapper
        self._removed: list[int] = [0]  # characters of the wrappers up to each
        for each in found:
            self._before.append(each.start - self._removed[-1])
            self._removed.append(self._removed[-1] + each.end - each.start)

    def seen_before(self, index: int) -> str:
        return self.visible[: self._before[index]]

    def seen_after(self, index: int) -> str:
        return self.visible[self._before[index] :]

    def original(self, place: int) -> int:
        return place + self._removed[bisect_right(self._before, place)]

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """The half-open span of the text that a visible one stands for."""
        return (self.original(start), self.original(end - 1) + 1) if end > start else (start, end)

    def original_of_examined(self, start: int, end: int) -> tuple[int, int]:
        return self.original_span(start + self._start, end + self._start)


@dataclass(frozen=True, slots=True)
class PartedRequest:
    """A request with its texts as readers see them.

    Attributes:
        visible: the request that is examined.
        texts: those with wrappers or a label, by their place among the inputs.
        failed: what came up inside at a text, by its place; it is raised where that text is answered.
    """

    visible: DetectionRequest
    texts: dict[int, PartedText]
    failed: dict[int, Exception] = field(default_factory=dict)

    def placed(self, index: int, result: DetectionResult) -> DetectionResult:
        """The result of input number `index` with places in the text as it was sent."""
        text = self.texts.get(index)
        if text is None:
            return result
        moved: dict[str, object] = {}
        if result.segments is not None:
            moved["segments"] = _moved(result.segments, text)
        if result.evidence is not None:
            moved["evidence"] = _moved(result.evidence, text)
        if result.foreign_marks is not None:
            moved["foreign_marks"] = [
                mark.model_copy(update={"segments": _moved(mark.segments, text)})
                for mark in result.foreign_marks
            ]
        return result.model_copy(update=moved)


def parted(request: DetectionRequest, label: Label | None) -> PartedRequest:
    texts: dict[int, PartedText] = {}
    failed: dict[int, Exception] = {}
    inputs: list[Document] = list(request.inputs)
    for index, document in enumerate(inputs):
        if not document.text:
            continue
        try:
            text = PartedText(document.text, wrappers(document.text), label)
        except Exception as error:
            failed[index] = error
            continue
        if text.examined != document.text:
            texts[index] = text
            inputs[index] = document.model_copy(update={"text": text.examined})
    visible = request.model_copy(update={"inputs": inputs}) if texts else request
    return PartedRequest(visible, texts, failed)


def _moved(parts: Sequence[Spanned], text: PartedText) -> list[Spanned]:
    moved = []
    for part in parts:
        if part.start_char is not None and part.end_char is not None:
            start, end = text.original_of_examined(part.start_char, part.end_char)
            part = part.model_copy(update={"start_char": start, "end_char": end})
        moved.append(part)
    return moved
