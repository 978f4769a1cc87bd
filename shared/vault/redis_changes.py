"""Commands and scripts of what keeps records of its own in Redis, such as jobs and cases."""

from collections.abc import Sequence
from typing import Any

from ttmark.shared.vault.redis_client import RedisClient
from ttmark.shared.vault.redis_conversation import Command, Conversation
from ttmark.shared.vault.redis_durability import Durability


def script_command(script: str, names: Sequence[str], *values: str | bytes | int) -> Command:
    """A script with the keys `names` and the arguments `values`."""
    return ("EVAL", script, len(names), *names, *values)


class RedisChanges:
    """One command at a time; each raises StoreUnavailable when Redis does not answer in time."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._durability = Durability(client.address, wait_seconds=client.reply_seconds)

    async def ask(self, command: Command) -> Any:
        """The reply."""

        async def ask(redis: Conversation) -> Any:
            return (await redis.ask(command))[0]

        return await self._client.run(ask)

    async def confirmed(self, command: Command) -> Any:
        """The reply, once what it changed has reached the disk as far as the address asks for it."""

        async def ask(redis: Conversation) -> Any:
            (reply,) = await redis.ask(command)
            await self._durability.confirm(redis)
            return reply

        return await self._client.run(ask)

    async def close(self) -> None:
        """Closes connections."""
        await self._client.close()
