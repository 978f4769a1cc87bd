"""A caller of the throttle of variants, and texts to ask about."""

import random
from collections.abc import Iterable

import numpy as np
from ttmark.detect_service.letters import letters_of
from ttmark.shared.limits.near_duplicates import Content, NearDuplicateThrottle
from ttmark.shared.limits.variants import Refusal, VariantRule

from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.limits.counters import Counters

LIMIT = 12
DAY = 86_400.0
NOON = 1_000 * DAY + DAY / 2  # a generation of half a day begins
RULE = VariantRule(limit=LIMIT, window_seconds=DAY, findings=2.0)
WORDS = [
    "".join(random.Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=3 + number % 6))
    for number in range(900)
]
NO_IDS = np.zeros(0, dtype=np.int64)


def principal(token_id: str = "token", tenant: str = "acme", *, evidence: bool = False) -> Principal:
    scopes = {Scope.DETECT, Scope.DETECT_EVIDENCE} if evidence else {Scope.DETECT}
    return Principal(token_id, tenant, frozenset(scopes))


class Asker:
    """A caller of a throttle at a time of its own."""

    def __init__(self, counters: Counters, rule: VariantRule = RULE, key: bytes = bytes(32)) -> None:
        self.now = NOON
        self.throttle = NearDuplicateThrottle(counters, key=key, rule=rule, now=lambda: self.now)

    async def ask_all(
        self, texts: Iterable[str], *, caller: Principal | None = None, options: str = "", rate: float = 1e-5
    ) -> Refusal | None:
        sketches = [
            self.throttle.sketch(Content(f"{options}:{text}".encode(), letters_of(text, str), NO_IDS))
            for text in texts
        ]
        return await self.throttle.admit(caller or principal(), sketches, rate=rate)

    async def ask(
        self, text: str, *, caller: Principal | None = None, options: str = "", rate: float = 1e-5
    ) -> Refusal | None:
        return await self.ask_all([text], caller=caller, options=options, rate=rate)

    async def ask_ids(self, ids: list[int]) -> Refusal | None:
        sketch = self.throttle.sketch(Content(str(ids).encode(), "", np.array(ids, dtype=np.int64)))
        return await self.throttle.admit(principal(), [sketch], rate=1e-5)


def text(seed: int, words: int = 120) -> str:
    """A text of random words; two of them share no passage."""
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def document(seed: int, length: int = 300) -> list[int]:
    return random.Random(seed).choices(range(50_000), k=length)
