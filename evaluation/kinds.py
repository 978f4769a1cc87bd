"""Languages and kinds of text: prompts that ask for each, and whether an answer is what was asked for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ttmark.evaluation.conformance.languages import NAMES, language_of
from ttmark.evaluation.inputs import read_field

QUESTIONS_PATH = Path(__file__).with_name("kinds.jsonl")
"""Twelve of each kind, which come in turn. English ones are chat questions to SmolLM2. Prose in other
languages goes on with a text: the model answers questions in them with a sentence, and goes on in English."""
PROSE = "prose"
SIGNS: Mapping[str, re.Pattern[str]] = {
    "dialogue": re.compile(r'^\s*(?:\**[A-Z][\w .\']{0,30}\**:|["“—])', re.MULTILINE),
    "code": re.compile(r"^\s*(?:def|class|import|from|for|while|if|return|print)\b", re.MULTILINE),
    "list": re.compile(r"^\s*(?:\d+[.)]|[-*•])\s", re.MULTILINE),
    "json": re.compile(r'"[^"\n]+"\s*:'),
}
"""What a text of the kind has several of: turns, statements, items, names of fields."""
LEAST_SIGNS = 3


@dataclass(frozen=True, slots=True)
class Kind:
    """What a prompt asks for.

    Attributes:
        language: ISO 639 code.
        form: `PROSE` or one of `SIGNS`.
    """

    language: str
    form: str

    def __str__(self) -> str:
        if self.language == "en":
            return {"list": "lists", "json": "JSON"}.get(self.form, self.form)
        language = NAMES.get(self.language, self.language)
        return language if self.form == PROSE else f"{language} {self.form}"

    def has(self, text: str) -> bool:
        """Whether a text is, roughly, of this kind: prose by its language, other forms by their signs."""
        if self.form == PROSE:
            return language_of(text) == self.language
        return len(SIGNS[self.form].findall(text)) >= LEAST_SIGNS


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt and the kind of text that it asks for."""

    kind: Kind
    prompt: str


def read_questions(path: Path) -> list[Question]:
    """Those of a JSONL file with the fields `language`, `kind` and `prompt`.

    Raises:
        ValueError: the file has no question, a line without a field, or a kind that nobody knows.
    """
    fields = (read_field(path, name) for name in ("language", "kind", "prompt"))
    questions = [
        Question(Kind(language, form), prompt) for language, form, prompt in zip(*fields, strict=True)
    ]
    if not questions:
        raise ValueError(f"{path} holds no question")
    for kind in {question.kind for question in questions}:
        if kind.form not in (PROSE, *SIGNS):
            raise ValueError(f"{path}: {kind.form!r} is none of {', '.join((PROSE, *SIGNS))}")
    return questions
