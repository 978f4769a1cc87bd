"""A caller of the ledger of answers, and rows to ask about."""

from collections.abc import Sequence

import numpy as np

from ttmark.detect_service.features.spent.spent_evidence import AnswerLedger, AskedRows, Standing
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.limits.counters import Counters
from ttmark.shared.limits.counting_filter import SPENT, AnswerRule, Names

LIMIT = 12
DAY = 86_400.0
NOON = 1_000 * DAY + DAY / 2  # a generation of half a day begins
RULE = AnswerRule(limit=LIMIT, window_seconds=DAY, findings=2.0)


def principal(token_id: str = "token", tenant: str = "acme") -> Principal:
    return Principal(token_id, tenant, frozenset({Scope.DETECT}))


class Asker:
    """A caller of a ledger at a time of its own."""

    def __init__(
        self, counters: Counters, rule: AnswerRule = RULE, key: bytes = bytes(32), each: int | None = None
    ) -> None:
        self.now = NOON
        self.ledger = AnswerLedger(counters, key=key, rule=rule, each=each, now=lambda: self.now)

    async def ask_all(
        self,
        documents: Sequence[Names],
        *,
        caller: Principal | None = None,
        options: str = "",
        rate: float = 1e-5,
        asker: str = "",
    ) -> list[Standing]:
        asked = [AskedRows(options.encode() + names.tobytes(), names) for names in documents]
        return await self.ledger.ask(caller or principal(), asked, rate=rate, asker=asker)

    async def ask(self, names: Names, *, options: str = "", **rest: object) -> Standing:
        (standing,) = await self.ask_all([names], options=options, **rest)  # type: ignore[arg-type]
        return standing

    async def spent(self, names: Names, *, options: str = "", **rest: object) -> int:
        """How many of the rows tell nothing more."""
        return int(np.count_nonzero((await self.ask(names, options=options, **rest)).states >= SPENT))


def rows(seed: int, count: int = 300) -> Names:
    """Names of rows; two documents share none."""
    return np.unique(np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64))
