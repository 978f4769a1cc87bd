"""Forgery by evidence that is cut up and dealt out anew in each document, so that no passage comes twice."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.features.spent.detect.oracle import KEY, Oracle
from tests.unit.detect_service.conftest import byte_tokenizer
from ttmark.shared.watermark.prf import key_lanes

WIDTH, SIZE = 4, 2  # of the keys of `conftest`
LETTERS = byte_tokenizer().encode("abcdefghijklmnopqrstuvwxyz")


def marked_ids(service: Any, tokens: int, seed: int) -> list[int]:
    """A marked answer of the generator, as token ids."""
    ids: list[int] = service.tokenizer.encode(service.marked(KEY, tokens, seed=seed))
    return ids


def pieces_of(ids: Sequence[int]) -> list[list[int]]:
    """Each block with its context."""
    starts = range(WIDTH, len(ids) - SIZE + 1, SIZE)
    return [list(ids[start - WIDTH : start + SIZE]) for start in starts]


def dealt(pieces: Sequence[Sequence[int]], chance: random.Random) -> list[int]:
    """The pieces in a new order, each after a junk pair: between them no row comes twice."""
    ids: list[int] = []
    for piece in chance.sample(list(pieces), len(pieces)):
        ids += [*chance.choices(LETTERS, k=2), *piece]
    return ids


def z_of(service: Any, pieces: Sequence[Sequence[int]]) -> float:
    """What the attacker does not see: the standardised sum of the scores of some pieces."""
    key = service.keys[KEY]
    watermark = key.profile.watermark()
    rows = np.array(pieces, dtype=np.int64)
    scores = watermark.score(key_lanes(key.primary.prf_key), rows[:, :WIDTH], rows[:, WIDTH:])
    return float(watermark.z_score(float(scores.sum()), len(pieces)))


class Scale:
    """Marked pieces, so many that a document is found about every second time."""

    def __init__(self, attacker: Oracle, marked: Sequence[Sequence[int]], seed: int) -> None:
        self.attacker = attacker
        self.chance = random.Random(seed)
        self.marked = list(marked)
        self.size = len(self.marked) // 2
        self.findings = 0

    async def found(self, pieces: Sequence[Sequence[int]]) -> bool | None:
        """Whether a document of the pieces and of the scale is found; the scale follows the answers."""
        ids = dealt([*pieces, *self.chance.sample(self.marked, self.size)], self.chance)
        body = {"inputs": [{"token_ids": ids}], "keys": [KEY], "fpr": 1e-5}
        response = await self.attacker.post(body, "direct")
        if response.status_code != 200:
            return None
        verdict = response.json()["results"][0]["verdict"]
        if verdict == "no_verdict":
            return None
        found = bool(verdict == "watermarked")
        self.findings += found
        self.size = min(len(self.marked), max(1, self.size + (-1 if found else 1)))
        return found


async def forged(
    attacker: Oracle, marked: Sequence[Sequence[int]], questions: int, seed: int
) -> tuple[list[list[int]], int]:
    """Of four alternatives for each of 50 blocks those with which documents were found more often."""
    scale, chance = Scale(attacker, marked, seed), random.Random(seed + 1000)
    contexts = [chance.choices(LETTERS, k=WIDTH) for _ in range(50)]
    choices = [[context + chance.choices(LETTERS, k=SIZE) for _ in range(4)] for context in contexts]
    scores = np.zeros((50, 4))
    for _ in range(questions):
        chosen = [chance.randrange(4) for _ in choices]
        found = await scale.found([blocks[one] for blocks, one in zip(choices, chosen, strict=True)])
        if found is not None:
            scores[np.arange(50), chosen] += 1 if found else -1
    best = [blocks[int(np.argmax(score))] for blocks, score in zip(choices, scores, strict=True)]
    return best, scale.findings
