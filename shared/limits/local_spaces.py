"""Spaces in the memory of one process: beside SQLite, and while Redis is away."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.limits.row_space import (
    CAPACITY,
    CELLS,
    FRESH,
    LASTING,
    LEAST_ROWS,
    SPENT,
    TURNING,
    WARM,
    Inquiry,
    Question,
    Refusal,
    Reply,
    States,
    states_of,
)


class _Generation:
    def __init__(self, ends_at: float) -> None:
        self.ends_at = ends_at
        self.cells = np.zeros(CELLS, dtype=np.uint8)
        self.answered: dict[bytes, bytes] = {}
        self.filled = 0
        self.drawn: Counter[str] = Counter()


class LocalSpaces:
    """Every tenant's space; what the script of `redis_spaces` does, in the plainest way."""

    def __init__(self) -> None:
        self._spaces: dict[str, dict[int, _Generation]] = {}

    def ask(self, inquiry: Inquiry) -> list[Reply]:
        """Counts each question, or says why not."""
        current, before = self._generations(inquiry)
        return [_ask(inquiry, question, current, before) for question in inquiry.questions]

    def _generations(self, inquiry: Inquiry) -> tuple[_Generation, _Generation]:
        if inquiry.space not in self._spaces:
            self._forget(inquiry.now)
        space = self._spaces.setdefault(inquiry.space, {})
        number = inquiry.generation
        for old in [one for one in space if one < number - 1]:
            del space[old]
        for needed in (number, number - 1):
            if needed not in space:
                space[needed] = _Generation((needed + 2) * inquiry.span)
        return space[number], space[number - 1]

    def _forget(self, now: float) -> None:
        """Gives up spaces that nobody has used for a whole window."""
        self._spaces = {
            name: space
            for name, space in self._spaces.items()
            if any(generation.ends_at > now for generation in space.values())
        }


def _ask(inquiry: Inquiry, question: Question, current: _Generation, before: _Generation) -> Reply:
    rows = question.cells.shape[1]
    for generation in (current, before):
        if question.digest in generation.answered:
            return Reply(states_of(generation.answered[question.digest], rows))
    refusal = _refusal(inquiry, question, current, before)
    if refusal is not None:
        return Reply(np.zeros(rows, dtype=np.uint8), refusal)
    states = np.zeros(rows, dtype=np.uint8)
    for cells, limit in zip(question.cells, inquiry.limits, strict=True):
        states = _counted(cells, limit, states, current, before)
    current.answered[question.digest] = states.tobytes() if states.any() else b""
    current.drawn[inquiry.caller] += question.price
    current.filled += max(LEAST_ROWS, rows)
    return Reply(states)


def _refusal(
    inquiry: Inquiry, question: Question, current: _Generation, before: _Generation
) -> Refusal | None:
    mine = current.drawn[inquiry.caller] + question.price
    if mine + before.drawn[inquiry.caller] > inquiry.budget:
        return Refusal("findings", inquiry.wait_seconds(lasting=mine > inquiry.budget))
    held = current.filled + max(LEAST_ROWS, question.cells.shape[1])
    if held + before.filled > CAPACITY:
        return Refusal("space", inquiry.wait_seconds(lasting=held > CAPACITY))
    return None


def _counted(
    cells: NDArray[np.uint32], limit: int, states: States, current: _Generation, before: _Generation
) -> States:
    """The states after one layer more, whose counters are increased."""
    mine = current.cells[cells].astype(np.int64)
    answers = mine + before.cells[cells]
    spent = answers >= limit
    current.cells[np.unique(cells[(states < SPENT) & ~spent])] += 1
    half, told = -(-limit // 2), answers + 1
    warm = np.where((told == half) | (told == limit), TURNING, np.where(told > half, WARM, FRESH))
    found = np.where(spent, np.where(mine >= limit, LASTING, SPENT), warm)
    return np.maximum(states, found).astype(np.uint8)
