"""Whether a change has reached the disk: WAITAOF on the connection that wrote it."""

import logging

from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from ttmark.shared.vault.key_store_errors import StoreUnavailable
from ttmark.shared.vault.redis_address import RedisAddress
from ttmark.shared.vault.redis_conversation import Conversation

_log = logging.getLogger(__name__)


class Durability:
    """Confirms changes as the address asks for it. WAITAOF needs Redis 7.2 and an append-only file."""

    def __init__(self, address: RedisAddress, *, wait_seconds: float) -> None:
        self._address = address
        self._wait_milliseconds = int(1000 * wait_seconds)
        self._warned = False

    async def confirm(self, redis: Conversation) -> None:
        """Returns when the last change made on this connection is on disk, here and on enough replicas.

        Raises:
            RedisTimeoutError: it is not confirmed in time; whether it will last is unknown.
            StoreUnavailable: the address demands the confirmation and the server cannot give it.
        """
        command = ("WAITAOF", 1, self._address.replicas, self._wait_milliseconds)
        try:
            ((local, replicas),) = await redis.ask(command, seconds=2 * self._wait_milliseconds / 1000)
        except ResponseError as error:
            self._refused(error)
            return
        if local < 1 or replicas < self._address.replicas:
            raise RedisTimeoutError(f"a change was not confirmed on disk within {self._wait_milliseconds} ms")

    def _refused(self, error: ResponseError) -> None:
        reason = f"{self._address.name} cannot confirm that changes are on disk ({error})"
        if self._address.must_confirm:
            raise StoreUnavailable(f"{reason}; it needs Redis 7.2 and appendonly yes") from error
        if not self._warned:
            self._warned = True
            _log.warning("%s: a crash of the server may lose acknowledged changes", reason)
