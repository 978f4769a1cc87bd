"""Spaces in the memory of one process: beside SQLite, and while Redis is away."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.limits.variants import (
    CAPACITY,
    CELLS,
    DIGESTS,
    Inquiry,
    Question,
    Refusal,
    is_variant,
)

_FULL_CELL = 255


class _Generation:
    def __init__(self, ends_at: float) -> None:
        self.ends_at = ends_at
        self.cells = np.zeros(CELLS, dtype=np.uint8)
        self.digests: dict[int, bytes] = {}
        self.filled = 0
        self.spent: Counter[str] = Counter()

    def knows(self, digest: bytes) -> bool:
        return self.digests.get(_place(digest)) == digest

    def count(self, cells: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Adds one to each cell that is not full; which those were."""
        grown = np.unique(cells)
        grown = grown[self.cells[grown] < _FULL_CELL]
        self.cells[grown] += 1
        return grown


class LocalSpaces:
    """Every tenant's space; what the script of `RedisSpaces` does, in the plainest way."""

    def __init__(self) -> None:
        self._spaces: dict[str, dict[int, _Generation]] = {}

    def ask(self, inquiry: Inquiry) -> Refusal | None:
        """Counts the questions of a request; or none of them, and says why."""
        current, before = self._generations(inquiry)
        asked: list[tuple[Question, NDArray[np.uint32]]] = []
        spent = filled = 0
        refusal = None
        for index, question in enumerate(inquiry.questions):
            digest = question.digest
            if current.knows(digest) or before.knows(digest) or any(one.digest == digest for one, _ in asked):
                continue
            spent += inquiry.price
            filled += len(np.unique(question.cells))
            refusal = _refusal(inquiry, index, spent, filled, current, before)
            if refusal is not None:
                break
            asked.append((question, current.count(question.cells)))
        if refusal is not None:
            for _, grown in asked:
                current.cells[grown] -= 1
            return refusal
        current.spent[inquiry.caller] += spent
        current.filled += filled
        current.digests.update((_place(question.digest), question.digest) for question, _ in asked)
        return None

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


def _place(digest: bytes) -> int:
    return int.from_bytes(digest[:4], "big") % DIGESTS


def _refusal(
    inquiry: Inquiry, index: int, spent: int, filled: int, current: _Generation, before: _Generation
) -> Refusal | None:
    cells, limit = inquiry.questions[index].cells, inquiry.rule.limit
    counts = current.cells[cells].astype(np.int64)
    if is_variant(counts + before.cells[cells] >= limit):
        return inquiry.refusal("variants", index, alone=is_variant(counts >= limit))
    mine = current.spent[inquiry.caller] + spent
    if mine + before.spent[inquiry.caller] > inquiry.budget:
        return inquiry.refusal("findings", index, alone=mine > inquiry.budget)
    held = current.filled + filled
    if held + before.filled > CAPACITY:
        return inquiry.refusal("space", index, alone=held > CAPACITY)
    return None
