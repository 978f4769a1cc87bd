"""Attacks by somebody who asks the detector, or who has other answers: removal by questions, stitching."""

from collections.abc import Callable, Sequence

import numpy as np

from ttmark.evaluation.text_edits import Edit, Material, sentences_of, words_of

Verdict = Callable[[str], bool | None]
"""Whether a text is found, as an ordinary caller is told; None: no verdict, a limit is reached."""

STEP = 0.02
"""Of the words, replaced before the first question; each further question is about twice as many."""


def removed_by_questions(verdict: Verdict) -> Edit:
    """An edit whose strength is the number of questions that may be asked about a text.

    Words are replaced, twice as many each time, until the text is no longer found. With the questions that
    are left, words are put back, half of them at a time, as long as it is not found. Without a verdict the
    attacker has what the last answers said, and if there were none, the text with the words replaced.
    """

    def edit(text: str, questions: float, material: Material, generator: np.random.Generator) -> str:
        words, left = words_of(text), round(questions)
        order = generator.permutation(len(words)).tolist()
        others = [material.run(1, generator)[0] for _ in words]

        def with_replaced(places: Sequence[int]) -> str:
            chosen = set(places)
            return "".join(others[at] if at in chosen else word for at, word in enumerate(words))

        replaced = max(1, round(STEP * len(words)))
        while left:
            left -= 1
            found = verdict(with_replaced(order[:replaced]))
            if not found:
                break
            replaced = min(2 * replaced, len(words))
        else:
            return with_replaced(order[:replaced])
        if found is None:
            return with_replaced(order[:replaced])
        least, most = replaced // 2, replaced
        while left and most - least > 1:
            left -= 1
            middle = (least + most) // 2
            found = verdict(with_replaced(order[:middle]))
            if found is None:
                break
            least, most = (middle, most) if found else (least, middle)
        return with_replaced(order[:most])

    return edit


def stitched(stolen: Sequence[str]) -> Edit:
    """An edit whose strength is the number of stolen answers.

    The forged text is as long as the one it stands for, and made of sentences of those answers, in no order.
    """

    def edit(text: str, answers: float, _: Material, generator: np.random.Generator) -> str:
        chosen = generator.permutation(len(stolen))[: round(answers)].tolist()
        sentences = [one.strip() for at in chosen for one in sentences_of(stolen[at]) if one.strip()]
        made, length = list[str](), 0
        for at in generator.permutation(len(sentences)).tolist():
            if length >= len(words_of(text)):
                break
            made.append(sentences[at])
            length += len(words_of(sentences[at]))
        return " ".join(made)

    return edit
