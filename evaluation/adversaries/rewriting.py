"""Sentences that the model itself says in other words, without a mark."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ttmark.evaluation.cells import Cell, sampling_seed
from ttmark.evaluation.edits import chosen_positions, sentences_of
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.run import Completion

MOST_TOKENS = 48
"""Of an answer; few sentences are longer."""
FEWEST_WORDS = 3
ASK = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\nSay this in other words, and answer with nothing else:\n\n{text}<|im_end|>\n"
    "<|im_start|>assistant\n"
)
"""In SmolLM2's chat template, as the prompts of a run are."""


@dataclass(frozen=True)
class RewritingCell(Cell):
    """Answers to a question about each sentence of the texts of another cell.

    Attributes:
        of: name of that cell.
        asked: the questions, token ids.
    """

    of: str = ""
    asked: tuple[tuple[int, ...], ...] = field(default=(), compare=False, repr=False)

    @property
    def name(self) -> str:
        """See `Cell`."""
        return f"reworded-n{self.tokens}-{self.of}"

    def prompt_ids(self, index: int, prompts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:  # noqa: ARG002
        """See `Cell`."""
        return self.asked[index]


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Texts in sentences, and each sentence in the model's other words.

    Attributes:
        sentences, reworded: [texts][sentences], white space before each kept.
    """

    sentences: list[list[str]]
    reworded: list[list[str]]

    def text(self, number: int, share: float, seed: int) -> str:
        """A text with a share of its sentences reworded."""
        generator = np.random.default_rng(sampling_seed(seed, "reworded", number, share))
        parts = list(self.sentences[number])
        for place in chosen_positions(len(parts), share, generator):
            parts[place] = self.reworded[number][place]
        return "".join(parts)


def rewriting(lab: Lab, cell: Cell, texts: Sequence[str]) -> Rewriting:
    """Asks the model about every sentence of the texts, decoded ones of `cell`; a fragment stays as it is."""
    sentences = [sentences_of(text) for text in texts]
    places = [
        (row, place)
        for row, parts in enumerate(sentences)
        for place, part in enumerate(parts)
        if len(part.split()) >= FEWEST_WORDS
    ]
    asked = tuple(
        tuple(lab.source.tokenizer.encode(ASK.format(text=sentences[row][place].strip())))
        for row, place in places
    )
    made = RewritingCell(None, 1, cell.setting, MOST_TOKENS, of=cell.name, asked=asked)
    reworded = [list(parts) for parts in sentences]
    for (row, place), answer in zip(places, lab.run.texts(made, len(asked)), strict=True):
        old = sentences[row][place]
        space = old[: len(old) - len(old.lstrip())]
        reworded[row][place] = space + _said(lab, answer)
    return Rewriting(sentences, reworded)


def _said(lab: Lab, answer: Completion) -> str:
    """An answer up to its first end of text."""
    ends = lab.source.end_tokens
    stop = next((place for place, token in enumerate(answer.token_ids) if token in ends), None)
    return lab.source.tokenizer.decode(answer.token_ids[:stop]).strip()
