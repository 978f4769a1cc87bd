"""Questions of many kinds put to a model, and what is measured of each answer."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.answers import Answer, answers_of
from ttmark.evaluation.cells import Cell
from ttmark.evaluation.conformance.work import check_identity
from ttmark.evaluation.entropy import entropy_bits, supports_along
from ttmark.evaluation.kinds import Kind, Question
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.receipts import found_log10_p, receipt_log10_p
from ttmark.evaluation.run import Completion, Run, read_kept, write_kept
from ttmark.evaluation.sources import PromptedSource

FOLDER = "kinds"
"""In the run's folder: texts that continue other prompts than the run's."""


@dataclass(frozen=True, slots=True)
class TextEntropy:
    """Of each text, its mean per token after the filters: entropy in bits, and number of candidates."""

    bits: tuple[float, ...]
    candidates: tuple[float, ...]

    def at(self, places: Sequence[int]) -> "TextEntropy":
        """Of those texts alone, where they are known."""
        kept = [place for place in places if place < len(self.bits)]
        return TextEntropy(*(tuple(values[i] for i in kept) for values in (self.bits, self.candidates)))


@dataclass(frozen=True, slots=True)
class Sample:
    """Texts of a cell, their answers, and what is said of them, all in one order.

    Attributes:
        predicted: log10 p of the receipts, [texts].
        found: log10 p of detection from the words, by mode, [texts] each.
    """

    texts: tuple[Completion, ...]
    answers: tuple[Answer, ...]
    predicted: NDArray[np.float64]
    found: Mapping[str, NDArray[np.float64]]

    def at(self, places: Sequence[int]) -> "Sample":
        """Those texts alone."""
        of_modes = {mode: values[places] for mode, values in self.found.items()}
        texts, answers = tuple(self.texts[i] for i in places), tuple(self.answers[i] for i in places)
        return Sample(texts, answers, self.predicted[places], of_modes)


@dataclass(frozen=True, slots=True)
class Survey:
    """Questions, and a run of their answers inside the lab's."""

    lab: Lab
    run: Run
    source: PromptedSource
    questions: Sequence[Question]

    @classmethod
    def open(cls, lab: Lab, questions: Sequence[Question]) -> "Survey":
        """Opens or resumes the run.

        Raises:
            ValueError: its folder holds answers to other questions.
        """
        folder, encode = lab.run.folder / FOLDER, lab.source.tokenizer.encode
        asked = "\n".join(question.prompt for question in questions)
        check_identity(folder, {"questions": hashlib.sha256(asked.encode()).hexdigest()})
        source = lab.source.asking([tuple(encode(question.prompt)) for question in questions])
        return cls(lab, Run(folder, source, lab.run.seed, lab.run.progress), source, questions)

    def kind(self, index: int) -> Kind:
        """What text number `index` of every cell was asked to be."""
        return self.questions[index % len(self.questions)].kind

    def sample(self, cell: Cell, per_kind: int) -> Sample:
        """`per_kind` texts of each kind, where the kinds come in turn."""
        kinds = {question.kind for question in self.questions}
        texts = self.run.texts(cell, per_kind * len(kinds))
        answers, watermark = answers_of(self.lab, cell, texts), cell.watermark()
        predicted = np.array([receipt_log10_p(watermark, answer) for answer in answers])
        return Sample(tuple(texts), tuple(answers), predicted, found_log10_p(watermark, answers))

    def entropy(self, cell: Cell, texts: Sequence[Completion]) -> TextEntropy:
        """Along the first texts of a cell, one per question; a pass of the model each, kept in a file.

        Over all keys marked texts are distributed as those without a mark.
        """
        texts = texts[: len(self.questions)]
        path = self.run.folder / "entropy" / f"{cell.name}-{len(texts)}.json"
        known = read_kept(path, TextEntropy)
        if known is None:
            known = TextEntropy(*zip(*(self._entropy(cell, text) for text in texts), strict=True))
            write_kept(path, known)
        return known

    def _entropy(self, cell: Cell, text: Completion) -> tuple[float, float]:
        prompts, model = self.source.prompts, self.lab.source.language_model
        prompt = prompts[cell.prompt(text.index, len(prompts))]
        rows = supports_along(model, cell.setting, prompt, text.token_ids)
        bits = [entropy_bits(row.probs) for row in rows]
        return float(np.mean(bits)), float(np.mean([len(row.ids) for row in rows]))
