"""Texts that are put together from several answers to one prompt."""

from collections.abc import Sequence

from ttmark.evaluation.edits import sentences_of, words_of


def by_sentences(answers: Sequence[str]) -> str:
    """The first sentence of the first answer, the second of the second, and so on round."""
    return _in_turn([sentences_of(answer) for answer in answers])


def by_words(answers: Sequence[str], run: int) -> str:
    """Runs of so many words in turn, each from the place that its answer has reached by then."""
    words = [words_of(answer) for answer in answers]
    runs = [["".join(of[start : start + run]) for start in range(0, len(of), run)] for of in words]
    return _in_turn(runs)


def _in_turn(parts: Sequence[Sequence[str]]) -> str:
    """Part i of answer i modulo their number; an answer that is over is passed by."""
    longest = max(map(len, parts))
    turns = [(place, parts[place % len(parts)]) for place in range(longest)]
    return "".join(of[place] for place, of in turns if place < len(of))
