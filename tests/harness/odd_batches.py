"""Detection requests about odd texts, and what their answers have to be."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from tests.harness.odd_texts import assigned, marks_of_each_class, odd_text, table_letters
from ttmark.shared.schemas.detection import MAX_DOCUMENTS

_MODES = ("", "/direct", "/aligned", "/localized")
_OWN_OPTIONS: dict[str, list[dict[str, Any]]] = {
    "": [{}],
    "/direct": [{}, {"phase": 0}, {"phase": "any"}],
    "/aligned": [{}, {"beta": 2.0}],
    "/localized": [{}, {"method": "waterseeker"}],
}
# At a tenth chance finds passages, so that answers have places in texts.
_RATES = (0.1, 1e-3, 1e-5)
_PIECES = 120


@dataclass(frozen=True, slots=True)
class Batch:
    """One request; `strict_json`: no text of it holds half a surrogate pair."""

    path: str
    body: dict[str, Any]
    strict_json: bool = True

    @property
    def content(self) -> bytes:
        """As it is sent, in ASCII."""
        return json.dumps(self.body).encode()

    def complaint(self, status: int, content: bytes) -> str | None:
        """What is wrong with an answer: its status, a missing verdict, a place outside of the text."""
        if not self.strict_json:
            return None if status == 400 else f"{status} for half a surrogate pair"
        if status != 200:
            return f"{status}: {content[:300]!r}"
        results = json.loads(content)["results"]
        if len(results) != len(self.body["inputs"]):
            return f"{len(results)} results"
        for document, result in zip(self.body["inputs"], results, strict=True):
            if result["verdict"] == "not_examined":
                return f"not examined: {document}"
            if any(not _within(span, document) for span in _spans(result)):
                return f"places outside of {document}"
        return None


def random_batch(generator: random.Random) -> Batch:
    """One to six documents, most of them texts, asked about in any way."""
    mode = generator.choice(_MODES)
    without = () if generator.random() < 0.03 else ("lone surrogates",)
    inputs: list[dict[str, Any]] = []
    for _ in range(generator.randint(1, 6)):
        if generator.random() < 0.1:
            inputs.append({"token_ids": generator.choices(range(256), k=generator.randrange(60))})
        else:
            inputs.append({"text": odd_text(generator, generator.randrange(_PIECES), without=without)})
    body = {
        "inputs": inputs,
        "fpr": generator.choice(_RATES),
        "normalize": generator.random() < 0.8,
        "evidence": generator.choice(["none", "blocks"]),
        **generator.choice(_OWN_OPTIONS[mode]),
    }
    # Two halves that happen to meet are a character.
    sent = json.dumps([document.get("text", "") for document in inputs])
    return Batch(f"/v1/detect{mode}", body, _is_utf8("".join(json.loads(sent))))


def letter_batches(step: int = 1) -> Iterator[Batch]:
    """Every letter of every table by itself, and every assigned code point beside marks of each class."""
    yield from _in_batches([f"{letter} \u1ea1" for letter in table_letters()])
    marks, characters = marks_of_each_class(), assigned()[::step]
    beside = [
        "".join(f"x{character}{mark} a{mark}{character} " for mark in (marks * 2)[first : first + 4])
        for character, first in zip(characters, cycle(range(len(marks))))
    ]
    yield from _in_batches(["".join(beside[at : at + 8]) + "\u1ea1\u1eb9" for at in range(0, len(beside), 8)])


def _in_batches(texts: Sequence[str]) -> Iterator[Batch]:
    for number, first in enumerate(range(0, len(texts), MAX_DOCUMENTS)):
        inputs = [{"text": text} for text in texts[first : first + MAX_DOCUMENTS]]
        yield Batch(f"/v1/detect{_MODES[number % 4]}", {"inputs": inputs, "fpr": 0.1})


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _spans(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in ("segments", "evidence"):
        yield from result.get(name) or ()


def _within(span: dict[str, Any], document: dict[str, Any]) -> bool:
    if "text" not in document:
        return span["start_char"] is None
    return bool(0 <= span["start_char"] <= span["end_char"] <= len(document["text"]))
