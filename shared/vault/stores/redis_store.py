"""The production store: one Redis hash per kind of record."""

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any

from ttmark.shared.vault.stores.key_store_errors import RevisionConflict
from ttmark.shared.vault.stores.redis_client import RedisClient
from ttmark.shared.vault.stores.redis_connections import HASH_TAG, Conversation
from ttmark.shared.vault.stores.store import Stored

CHANGES_CHANNEL = f"{HASH_TAG}:changes"
VOLUME_HASH = f"{HASH_TAG}:volume"
_SILENCE_SECONDS = 5.0


class RedisStore:
    """RecordStore in the hashes `{ttmark}:<kind>`, whose fields are record ids: a scan is one command.

    Every call ends within the client's budget, retries included. Changes are compare-and-set with WATCH,
    so no role needs the right to run scripts, and are announced on a channel.
    """

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def get(self, kind: str, record_id: str) -> Stored | None:
        return _decode(await self._client.ask(("HGET", _hash(kind), record_id)))

    async def scan(self, kind: str) -> list[tuple[str, Stored]]:
        flat = await self._client.ask(("HGETALL", _hash(kind)))
        records = zip(flat[::2], flat[1::2], strict=True)
        return sorted((name.decode(), stored) for name, value in records if (stored := _decode(value)))

    async def put(self, kind: str, record_id: str, payload: bytes, *, expected_revision: int) -> int:
        """Compare and set in one transaction; a retry recognises the change that it made already."""
        intended = Stored(expected_revision + 1, payload)
        encoded = b"%d:%b" % (intended.revision, payload)

        async def write(redis: Conversation) -> int:
            while True:
                _, value = await redis.ask(("WATCH", _hash(kind)), ("HGET", _hash(kind), record_id))
                current = _decode(value)
                if (current.revision if current else 0) != expected_revision and current != intended:
                    await redis.ask(("UNWATCH",))
                    raise RevisionConflict(f"{kind} {record_id} is not at revision {expected_revision}")
                # Written again even if it is there already: only a connection that wrote can confirm.
                *_, done = await redis.ask(
                    ("MULTI",),
                    ("HSET", _hash(kind), record_id, encoded),
                    ("PUBLISH", CHANGES_CHANNEL, kind),
                    ("EXEC",),
                )
                if done is not None:
                    await self._client.confirm(redis)
                    return intended.revision
                await asyncio.sleep(random.uniform(0, 0.005))  # noqa: S311 - spreads out other writers

        return await self._client.run(write)

    async def add(self, amounts: Mapping[str, int]) -> dict[str, int]:
        """One HINCRBY each, in one round trip; not waited for on disk: the last seconds may be lost."""
        commands = [("HINCRBY", VOLUME_HASH, name, amount) for name, amount in amounts.items()]
        return dict(zip(amounts, await self._client.ask_all(*commands), strict=True)) if commands else {}

    async def counts(self) -> dict[str, int]:
        flat = await self._client.ask(("HGETALL", VOLUME_HASH))
        return {name.decode(): int(value) for name, value in zip(flat[::2], flat[1::2], strict=True)}

    async def watch(self, changed: Callable[[str], None]) -> None:
        async with self._client.borrow() as redis:
            await redis.ask(("SUBSCRIBE", CHANGES_CHANNEL))
            while True:
                message = await redis.next_message(_SILENCE_SECONDS)
                if message is None:
                    (message,) = await redis.ask(("PING",))
                if message[0] == b"message":
                    changed(message[2].decode())

    async def ping(self) -> None:
        await self._client.ask(("PING",))

    async def close(self) -> None:
        await self._client.close()


def _hash(kind: str) -> str:
    return f"{HASH_TAG}:{kind}"


def _decode(value: Any) -> Stored | None:
    if value is None:
        return None
    revision, _, payload = value.partition(b":")
    return Stored(int(revision), payload) if revision.isdigit() else Stored(0, value)
