"""Counters and spaces that all replicas share, in Redis; while it is away, those of this process."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ttmark.shared.limits.counters import PARTS, Counters, LocalCounters
from ttmark.shared.limits.counting_filter import (
    CAPACITY,
    CELLS,
    LEAST_ROWS,
    STORE_REASONS,
    Inquiry,
    Refusal,
    Reply,
    states_of,
)
from ttmark.shared.vault.outage import RETRY_SECONDS, Outage
from ttmark.shared.vault.stores.key_store_errors import StoreUnavailable
from ttmark.shared.vault.stores.redis_client import RedisClient, script_command
from ttmark.shared.vault.stores.redis_connections import HASH_TAG, RedisAddress

T = TypeVar("T")
_LUA = Path(__file__).with_suffix(".lua")


class RedisCounters:
    """Counters under `{ttmark}:count:<name>`, which Redis forgets by itself.

    The budget is short: a limit that cannot be looked up must not hold a request up.
    """

    def __init__(self, address: RedisAddress, *, budget_seconds: float = 0.25) -> None:
        self._client = RedisClient(
            address,
            connect_seconds=budget_seconds,
            reply_seconds=budget_seconds,
            budget_seconds=budget_seconds,
            connections=16,
        )

    @property
    def shared(self) -> bool:
        return True

    async def add(self, name: str, amount: int, *, part: int = 0, lifetime_seconds: float) -> dict[int, int]:
        """One round trip. A repetition after a broken connection may count twice, never less than once."""
        now, before = (f"{HASH_TAG}:count:{name}:{part // PARTS - back}" for back in (0, 1))
        added = ("HINCRBY", now, part, amount), ("PEXPIRE", now, int(1000 * lifetime_seconds))
        *_, latest, others = await self._client.ask_all(*added, ("HGETALL", now), ("HGETALL", before))
        flat = list(map(int, [*others, *latest]))
        parts = zip(flat[::2], flat[1::2], strict=True)
        return {one: count for one, count in parts if one > part - PARTS}

    async def ask(self, inquiry: Inquiry) -> list[Reply]:
        """One round trip. A repetition after a broken connection is known again: it counts once."""
        number = inquiry.generation
        keys = [
            f"{HASH_TAG}:count:rows:{inquiry.space}:{generation}:{part}"
            for generation in (number, number - 1)
            for part in ("cells", "answered", "sums")
        ]
        values: list[str | bytes | int] = [int(2000 * inquiry.span), CAPACITY, LEAST_ROWS, inquiry.budget]
        values += [inquiry.caller, CELLS, len(inquiry.limits), *inquiry.limits]
        for question in inquiry.questions:
            values += [question.digest, question.price, question.cells.astype(">u4").tobytes()]
        answers = await self._client.ask(script_command(_LUA, "ask", keys, *values))
        replies = []
        for question, (reason, lasting, packed) in zip(inquiry.questions, answers, strict=True):
            refusal = None
            if reason:
                refusal = Refusal(STORE_REASONS[reason - 1], inquiry.wait_seconds(lasting=bool(lasting)))
            replies.append(Reply(states_of(packed, question.cells.shape[1]), refusal))
        return replies

    async def put(self, name: str, values: Mapping[bytes, bytes], *, lifetime_seconds: float) -> None:
        key = f"{HASH_TAG}:count:{name}"
        fields = [part for pair in values.items() for part in pair]
        lifetime = ("PEXPIRE", key, int(1000 * lifetime_seconds))
        await self._client.ask_all(("HSET", key, *fields), lifetime)

    async def get(self, name: str, fields: Sequence[bytes]) -> list[bytes | None]:
        return list(await self._client.ask(("HMGET", f"{HASH_TAG}:count:{name}", *fields)))

    async def close(self) -> None:
        await self._client.close()


class FallbackCounters:
    """Shared counters, and this process's own while the shared ones are away.

    Where a call fails, and they answer, it is tried once more. What fails again fails alone if it asks what
    is spent, which the process's own counters do not know; what is only written is written to those.
    """

    def __init__(self, counters: Counters, *, retry_seconds: float = RETRY_SECONDS) -> None:
        self._shared = counters
        self._local = LocalCounters()
        self._outage = Outage(lambda: counters.add("look", 0, lifetime_seconds=60), retry_seconds)

    @property
    def shared(self) -> bool:
        """Whether the shared counters answered, or were not asked yet, when they were looked for last."""
        return not self._outage.away

    async def add(self, name: str, amount: int, **how: Any) -> dict[int, int]:
        return await self._run(lambda counters: counters.add(name, amount, **how), is_read=False)

    async def ask(self, inquiry: Inquiry) -> list[Reply]:
        return await self._run(lambda counters: counters.ask(inquiry))

    async def put(self, name: str, values: Mapping[bytes, bytes], *, lifetime_seconds: float) -> None:
        await self._run(
            lambda counters: counters.put(name, values, lifetime_seconds=lifetime_seconds), is_read=False
        )

    async def get(self, name: str, fields: Sequence[bytes]) -> list[bytes | None]:
        return await self._run(lambda counters: counters.get(name, fields))

    async def close(self) -> None:
        self._outage.close()
        await self._shared.close()

    async def _run(self, work: Callable[[Counters], Awaitable[T]], *, is_read: bool = True) -> T:
        for look in (self._outage.look, None):
            if self._outage.away:
                break
            try:
                return await work(self._shared)
            except StoreUnavailable:
                if look is not None:
                    await look()
                elif is_read:
                    raise
        return await work(self._local)
