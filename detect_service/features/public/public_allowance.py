"""What the public may ask: words in a day, by asker, token and tenant; and answers about rows.

An answer counts twice: among those of who asks, and among those of all the tenant's public askers. The first
keeps one of them from using up the others' answers; the second bounds what all of them learn together.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ttmark.detect_service.features.spent.spent_evidence import AnswerLedger
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.service_errors import TooManyRequests
from ttmark.shared.limits.counters import Counters
from ttmark.shared.limits.counting_filter import AnswerRule
from ttmark.shared.limits.rate_limits import Grant, LimitMetrics, RateLimiter

_DAY = 86_400.0
_MINUTE = 60.0
_CHARACTERS_IN_A_WORD = 6
_FEWEST_WORDS = 50


@dataclass(frozen=True, slots=True)
class PublicBudget:
    """How much may be asked. 0 words or requests: any.

    Attributes:
        address_words, token_words, tenant_words: in a day; the first of people without a token.
        address_requests: in a minute: more than a person types, and few for a program.
        asker: answers that one asker may have about a row: ten are enough to remove a mark.
        everybody: what all of a tenant's may have, and by how many chance findings they may profit.
    """

    address_words: int
    token_words: int
    tenant_words: int
    everybody: AnswerRule
    address_requests: int = 20
    asker: int = 4

    @classmethod
    def of(cls, token_words: int, findings: float) -> "PublicBudget":
        """Ten addresses use up the words of a token, and three tokens those of a tenant.

        About a row everybody together gets as many answers as a tenant's own tokens do.
        """
        addresses, everybody = -(-token_words // 10), AnswerRule(12, findings=findings)
        return cls(addresses, token_words, 3 * token_words, everybody)


def words_of(text: str) -> int:
    """What a text counts: a word for each six characters, whatever they are, and no less than fifty."""
    return max(_FEWEST_WORDS, math.ceil(len(text) / _CHARACTERS_IN_A_WORD))


class PublicAllowance:
    """Counts what the public asks, in all replicas; `key` names what is counted, as in `AnswerLedger`."""

    def __init__(
        self,
        counters: Counters,
        budget: PublicBudget,
        metrics: LimitMetrics,
        refused: Callable[[Principal, Sequence[str]], None],
        *,
        key: bytes,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.budget = budget
        self._metrics = metrics
        self.refused = refused
        self._words = RateLimiter(counters, window_seconds=_DAY, now=now)
        self._requests = RateLimiter(counters, window_seconds=_MINUTE, now=now)
        self.ledger = AnswerLedger(counters, key=key, rule=budget.everybody, each=budget.asker, now=now)

    async def admit_guest(self, guest: str) -> float | None:
        """A request of somebody without a token: None, or the seconds after which to try again.

        Refusals are counted and not audited: their number is for anybody to choose.
        """
        limit = self.budget.address_requests
        wait = await self._requests.admit(f"public.requests:{guest}", limit=limit) if limit else None
        if wait is not None:
            self._metrics.refused("address")
        return wait

    async def take(self, caller: Principal, guest: str | None, words: int) -> None:
        """Grants the words of a question.

        Args:
            guest: the name of an asker without a token, who came in under `caller`.

        Raises:
            TooManyRequests: the day's words are used up.
        """
        budget = self.budget
        names = [
            (f"public.words.token:{caller.token_id}", budget.token_words),
            (f"public.words.tenant:{caller.tenant}", budget.tenant_words),
        ]
        if guest is not None:
            names.insert(0, (f"public.words.address:{guest}", budget.address_words))
        granted: list[Grant] = []
        for name, limit in names:
            if not limit:
                continue
            taken = await self._words.take(name, words, limit=limit)
            if not isinstance(taken, Grant):
                for before in granted:
                    await self._words.settle(before, used=0)
                self.refused(caller, ["words"])
                raise TooManyRequests("The words of a day are used up.", retry_after=taken)
            granted.append(taken)
