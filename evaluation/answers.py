"""Texts as their readers get them: up to the end that the model gave them, and read again from the words."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.cells import Cell
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.run import Completion


@dataclass(frozen=True, slots=True)
class Answer:
    """One text without what follows its end.

    Attributes:
        key: that marked it.
        tokens: as generated; the token that ends the text is not among them.
        read: the words encoded again.
    """

    key: bytes
    tokens: NDArray[np.int64]
    text: str
    read: NDArray[np.int64]

    @property
    def changed(self) -> bool:
        """Whether it is read as other tokens than it was generated as."""
        return not np.array_equal(self.tokens, self.read)


def answers_of(lab: Lab, cell: Cell, texts: Sequence[Completion]) -> list[Answer]:
    """The texts of a cell as answers."""
    tokenizer, ends = lab.source.tokenizer, list(lab.source.end_tokens)
    answers = []
    for text in texts:
        tokens = text.tokens()
        found = np.flatnonzero(np.isin(tokens, ends))
        tokens = tokens[: found[0]] if found.size else tokens
        words = tokenizer.decode(tokens.tolist())
        read = np.array(tokenizer.encode(words), dtype=np.int64)
        answers.append(Answer(cell.key(lab.run.seed, text.index), tokens, words, read))
    return answers
