"""Which key of its pool each completion is marked with."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ttmark.gen_service.api.marking_choice import MarkingChoice
from ttmark.gen_service.engine import Marking

_PERSON = b"ttmark.pool.v1"


def markings(
    choice: MarkingChoice, seed: int | None, prompt_ids: Sequence[int], choices: int
) -> list[Marking | None]:
    """The marking of each of a prompt's completions, with different keys as long as the pool has so many.

    Args:
        seed: of the request; with one, the same prompt gets the same keys again.
    """
    if choice.marking is None:
        return [None] * choices
    first = _first(choice.pool, seed, prompt_ids)
    return [
        replace(choice.marking, prf_key=choice.pool[(first + index) % len(choice.pool)])
        for index in range(choices)
    ]


def _first(pool: Sequence[bytes], seed: int | None, prompt_ids: Sequence[int]) -> int:
    """The number of the first completion's key, uniform over the pool.

    A seed is the caller's. Hashed with a secret and the prompt it names no key: who sends one seed with every
    prompt does not get all answers under one key.
    """
    if seed is None or len(pool) == 1:
        return secrets.randbelow(len(pool))
    digest = hashlib.blake2b(key=pool[0], person=_PERSON, digest_size=16)
    digest.update(seed.to_bytes(8, "little"))
    digest.update(np.array(prompt_ids, dtype="<i8").tobytes())
    return int.from_bytes(digest.digest(), "little") % len(pool)
