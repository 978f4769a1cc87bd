"""Visible labels around completions, and the metadata that goes with them."""

from dataclasses import dataclass, replace

from ttmark.gen_service.engine import Delta
from ttmark.shared.labels import Label
from ttmark.shared.schemas.watermark_block import LabelNote

_GENERATED = "1"


@dataclass(frozen=True, slots=True)
class LabelRule:
    """The operator's; requests have no say.

    Attributes:
        label: None: texts have none.
        producer: who is named in the `AIGC` metadata; None: there is none.
    """

    label: Label | None = None
    producer: str | None = None

    def choose(self, *, structured: bool) -> LabelNote | None:
        """What becomes of the label of a request's texts; `structured` ones are for programs."""
        if self.label is None:
            return None
        return "structured_output" if structured else self.label.place

    @property
    def text_start(self) -> int:
        """Characters before a labelled text."""
        return len(self.label.characters) if self.label and self.label.place == "start" else 0

    def put(self, delta: Delta, sent: str) -> Delta:
        """A delta of a labelled completion with the label, where it begins or ends the text.

        Args:
            sent: the completion's text before this delta.
        """
        label = self.label
        begins = bool(delta.text) and not sent
        ends = delta.finish_reason is not None and bool(delta.text or sent)
        if label is not None and label.place == "start" and begins:
            return replace(delta, text=label.characters + delta.text)
        if label is not None and label.place == "end" and ends:
            return replace(delta, text=delta.text + label.characters)
        return delta

    def aigc(self, response_id: str) -> dict[str, str] | None:
        """The metadata of a response, by the standard's names."""
        if self.producer is None:
            return None
        return {"Label": _GENERATED, "ContentProducer": self.producer, "ProduceID": response_id}
