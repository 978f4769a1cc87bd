"""Edits of a text that need no model: words are replaced, deleted or inserted, sentences swapped, text added.

An edit touches a share of the words, singly or in runs. Runs are what a paraphrase of some sentences does to
a watermark: the words between two runs keep their contexts.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ttmark.evaluation.endpoint import EndpointClient
from ttmark.evaluation.experiment_cells import sampling_seed

WORDS_PER_RUN = 12
WORD = re.compile(r"\s*\S+")
SENTENCE_END = re.compile(r"(?<=[.!?])(?=\s)")


@dataclass(frozen=True, slots=True)
class Material:
    """Unwatermarked words that edits draw on, in the order of a text, each with the space before it."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Material":
        return cls(tuple(f" {word}" for text in texts for word in text.split()))

    def run(self, length: int, generator: np.random.Generator) -> list[str]:
        """Consecutive words from a random place.

        Raises:
            ValueError: there are not so many.
        """
        if length > len(self.words):
            raise ValueError(f"an edit needs {length} words of other text, there are {len(self.words)}")
        start = int(generator.integers(len(self.words) - length + 1))
        return list(self.words[start : start + length])


Edit = Callable[[str, float, Material, np.random.Generator], str]
"""Takes a text, the share to edit, other text, and randomness."""


def substitute(text: str, share: float, material: Material, generator: np.random.Generator) -> str:
    words = words_of(text)
    for position in chosen_positions(len(words), share, generator):
        words[position] = material.run(1, generator)[0]
    return "".join(words)


def delete(text: str, share: float, _: Material, generator: np.random.Generator) -> str:
    words = words_of(text)
    gone = set(chosen_positions(len(words), share, generator))
    return "".join(word for position, word in enumerate(words) if position not in gone)


def insert(text: str, share: float, material: Material, generator: np.random.Generator) -> str:
    """Single words are added after others; `share` counts them against the words that were there."""
    words = words_of(text)
    for position in sorted(chosen_positions(len(words), share, generator), reverse=True):
        words[position + 1 : position + 1] = material.run(1, generator)
    return "".join(words)


def rewrite(text: str, share: float, material: Material, generator: np.random.Generator) -> str:
    """Runs of about a sentence's length become other text, as in the paper's rephrasing of 30 %."""
    words = words_of(text)
    runs = [words[start : start + WORDS_PER_RUN] for start in range(0, len(words), WORDS_PER_RUN)]
    for position in chosen_positions(len(runs), share, generator):
        runs[position] = material.run(len(runs[position]), generator)
    return "".join(word for run in runs for word in run)


def swap_sentences(text: str, share: float, _: Material, generator: np.random.Generator) -> str:
    """Sentences change places among each other; runs of words do where there are no sentences."""
    sentences = sentences_of(text)
    chosen = chosen_positions(len(sentences), share, generator)
    moved = generator.permutation(chosen).tolist()
    result = list(sentences)
    for target, source in zip(chosen, moved, strict=True):
        result[target] = sentences[source]
    return "".join(result)


def dilute(text: str, share: float, material: Material, generator: np.random.Generator) -> str:
    """Copy-paste: the text stands inside other text, which is `share` of the whole."""
    words = words_of(text)
    added = material.run(round(len(words) * share / (1 - share)), generator)
    before = int(generator.integers(len(added) + 1))
    return "".join([*added[:before], " " if before else "", *words, *added[before:]])


def mix(text: str, share: float, material: Material, generator: np.random.Generator) -> str:
    """Each edit is a substitution, a deletion or an insertion, with equal chances."""
    words = words_of(text)
    for position in reversed(chosen_positions(len(words), share, generator)):
        new = material.run(1, generator)
        words[position : position + 1] = [new, [], [words[position], *new]][generator.integers(3)]
    return "".join(words)


EDITS: dict[str, Edit] = {
    "rewrite": rewrite,
    "substitute": substitute,
    "delete": delete,
    "insert": insert,
    "swap": swap_sentences,
    "dilute": dilute,
    "mix": mix,
}


def words_of(text: str) -> list[str]:
    """Words with the white space before them; joined they are the text."""
    return WORD.findall(text)


def sentences_of(text: str) -> list[str]:
    """Sentences with the white space before them; runs of words where there are no three."""
    sentences = SENTENCE_END.split(text)
    if len(sentences) >= 3:
        return sentences
    words = words_of(text)
    return ["".join(words[i : i + WORDS_PER_RUN]) for i in range(0, len(words), WORDS_PER_RUN)]


def chosen_positions(count: int, share: float, generator: np.random.Generator) -> list[int]:
    """`share` of the positions 0..count-1, in order."""
    picked = generator.choice(count, size=round(share * count), replace=False)
    positions: list[int] = sorted(picked.tolist())
    return positions


PROMPTS = {
    "paraphrase": ("Say this in other words, and answer with nothing else:\n\n{text}",),
    "back-translation": (
        "Translate this into French, and answer with nothing else:\n\n{text}",
        "Translate this into English, and answer with nothing else:\n\n{text}",
    ),
}
"""Prompts by edit; the answer to one is the text of the next."""


def through_endpoint(name: str, text: str, share: float, seed: int, client: EndpointClient) -> str:
    """A text with `share` of its sentences through the endpoint, by the prompts of that name."""
    # The name of an edit's seed has a part that is empty, so that runs find the answers that they kept.
    generator = np.random.default_rng(sampling_seed(seed, "edit", name, ""))
    sentences = sentences_of(text)
    chosen = chosen_positions(len(sentences), share, generator)
    passages = [sentences[place] for place in chosen]
    for template in PROMPTS[name]:
        passages = client.ask_all([template.format(text=passage.strip()) for passage in passages])
    for place, answer in zip(chosen, passages, strict=True):
        old = sentences[place]
        sentences[place] = old[: len(old) - len(old.lstrip())] + answer.strip()
    return "".join(sentences)
