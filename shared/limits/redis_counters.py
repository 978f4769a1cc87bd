"""Counters that all replicas share, in Redis."""

from collections.abc import Mapping, Sequence

from ttmark.shared.limits import redis_spaces
from ttmark.shared.limits.row_space import Inquiry, Reply
from ttmark.shared.vault.redis_address import RedisAddress
from ttmark.shared.vault.redis_client import RedisClient
from ttmark.shared.vault.redis_conversation import Command, Conversation
from ttmark.shared.vault.redis_location import HASH_TAG


class RedisCounters:
    """Counters under `{ttmark}:count:<name>`, which Redis forgets by itself.

    The budget is short: a limit that cannot be looked up must not hold a request up.
    """

    def __init__(self, address: RedisAddress, *, budget_seconds: float = 0.25, connections: int = 16) -> None:
        self._client = RedisClient(
            address,
            connect_seconds=budget_seconds,
            reply_seconds=budget_seconds,
            budget_seconds=budget_seconds,
            connections=connections,
        )

    @property
    def shared(self) -> bool:
        """Always."""
        return True

    async def add(self, amounts: Mapping[str, int], *, lifetime_seconds: float) -> dict[str, int]:
        """One round trip. A repetition after a broken connection may count twice, never less than once."""
        commands: list[Command] = []
        for name, amount in amounts.items():
            counter = f"{HASH_TAG}:count:{name}"
            commands += [
                ("INCRBY", counter, amount),
                ("PEXPIRE", counter, int(1000 * lifetime_seconds)),
            ]

        async def add(redis: Conversation) -> dict[str, int]:
            replies = await redis.ask(*commands)
            return dict(zip(amounts, replies[::2], strict=True))

        return await self._client.run(add)

    async def ask(self, inquiry: Inquiry) -> list[Reply]:
        """One round trip. A repetition after a broken connection is known again: it counts once."""
        return await self._client.run(lambda redis: redis_spaces.ask(redis, inquiry))

    async def put(self, name: str, values: Mapping[bytes, bytes], *, lifetime_seconds: float) -> None:
        """One round trip."""
        key = f"{HASH_TAG}:count:{name}"
        fields = [part for pair in values.items() for part in pair]

        async def put(redis: Conversation) -> None:
            await redis.ask(("HSET", key, *fields), ("PEXPIRE", key, int(1000 * lifetime_seconds)))

        await self._client.run(put)

    async def get(self, name: str, fields: Sequence[bytes]) -> list[bytes | None]:
        """One round trip."""

        async def get(redis: Conversation) -> list[bytes | None]:
            (values,) = await redis.ask(("HMGET", f"{HASH_TAG}:count:{name}", *fields))
            return list(values)

        return await self._client.run(get)

    async def close(self) -> None:
        """Closes idle connections."""
        await self._client.close()
