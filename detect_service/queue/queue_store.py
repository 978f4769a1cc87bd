"""Where the queue is kept: sealed items, each changed on what was before; in a SQLite file or in Redis.

In Redis `{ttmark}:queue:item:<tenant>:<id>` is an item. `{ttmark}:queue:of:<tenant>` and, with `:<state>`
behind it, those in a state are in the order in which items came, `{ttmark}:queue:expiry` is when each expires
and `{ttmark}:queue:count:<tenant>` how many there are. As with cases nothing expires by itself.
"""

import sqlite3
from dataclasses import astuple, dataclass
from pathlib import Path

from ttmark.detect_service.stored_records import SqliteRecords
from ttmark.shared.schemas.review_queue import QueueState
from ttmark.shared.vault.redis_client import RedisClient, script_command
from ttmark.shared.vault.redis_connections import HASH_TAG


class QueueFull(Exception):
    """The tenant's queue has as many items as it may."""


@dataclass(frozen=True, slots=True)
class KeptItem:
    """An item as it lies in the store.

    Attributes:
        version: how often it was written; 1 is a new one.
        sealed: all that is not said here.
        added_at: Unix time; the queue's order.
        expires_at: Unix time from which it may be forgotten.
    """

    item_id: str
    tenant: str
    state: QueueState
    version: int
    sealed: bytes
    added_at: float
    expires_at: float


_SELECT = "SELECT item_id, tenant, state, version, sealed, added_at, expires_at FROM items WHERE tenant = ?"
_SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS items (
    item_id TEXT NOT NULL, tenant TEXT NOT NULL, state TEXT NOT NULL, version INTEGER NOT NULL,
    sealed BLOB NOT NULL, added_at REAL NOT NULL, expires_at REAL NOT NULL, PRIMARY KEY (tenant, item_id)
)""",
    "CREATE INDEX IF NOT EXISTS items_in_order ON items (tenant, added_at)",
    "PRAGMA secure_delete = ON",  # what is forgotten leaves no bytes in the file
)


class SqliteQueue(SqliteRecords):
    """The queue in a `SqliteFile`."""

    def __init__(self, path: Path) -> None:
        super().__init__("queue store", path, _SCHEMA, "items", "item_id")

    async def add(self, item: KeptItem, most: int) -> bool:
        """Adds an item, unless the tenant has one of this id; whether it was added.

        Raises:
            QueueFull: the tenant has `most` items.
        """

        def write(connection: sqlite3.Connection) -> bool:
            there = "SELECT 1 FROM items WHERE tenant = ? AND item_id = ?"
            if connection.execute(there, (item.tenant, item.item_id)).fetchone():
                return False
            count = "SELECT COUNT(*) FROM items WHERE tenant = ?"
            if connection.execute(count, (item.tenant,)).fetchone()[0] >= most:
                raise QueueFull
            connection.execute("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(item))
            return True

        return await self._file.change(write)

    async def replace(self, item: KeptItem) -> bool:
        """Takes the place of the item's version before; whether that was there."""
        statement = (
            "UPDATE items SET state = ?, version = ?, sealed = ?, expires_at = ? "
            "WHERE tenant = ? AND item_id = ? AND version = ?"
        )
        new = (item.state, item.version, item.sealed, item.expires_at)
        return await self._changed(statement, *new, item.tenant, item.item_id, item.version - 1) == 1

    async def get(self, tenant: str, item_id: str) -> KeptItem | None:
        """The tenant's item, or None."""
        rows = await self._rows(_SELECT + " AND item_id = ?", tenant, item_id)
        return KeptItem(*rows[0]) if rows else None

    async def listed(self, tenant: str, state: QueueState | None, offset: int, limit: int) -> list[KeptItem]:
        """Items of the tenant in this state, or in any, the newest first."""
        in_order = " AND (? IS NULL OR state = ?) ORDER BY added_at DESC, item_id DESC LIMIT ? OFFSET ?"
        rows = await self._rows(_SELECT + in_order, tenant, state, state, limit, offset)
        return [KeptItem(*row) for row in rows]


_QUEUE = f"{HASH_TAG}:queue"
_EXPIRY = f"{_QUEUE}:expiry"
_FIELDS = ("state", "version", "sealed", "added_at", "expires_at")

# KEYS of all: item, expiry, order of the tenant, order in the item's new state, number of the tenant's items.
# ARGV of all: id, tenant. Then of adding: state, version, sealed, added, expires, most. Gives 1: added, 0:
# there was one, -1: there is no room.
_ADD = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if tonumber(redis.call('GET', KEYS[5]) or '0') >= tonumber(ARGV[8]) then return -1 end
redis.call('HSET', KEYS[1], 'state', ARGV[3], 'version', ARGV[4], 'sealed', ARGV[5], 'added_at', ARGV[6],
           'expires_at', ARGV[7])
redis.call('ZADD', KEYS[2], ARGV[7], ARGV[2] .. ' ' .. ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[6], ARGV[1])
redis.call('ZADD', KEYS[4], ARGV[6], ARGV[1])
redis.call('INCRBY', KEYS[5], 1)
return 1
"""

# KEYS 6 and on: the orders in each state. ARGV 3 and on: state, version, sealed, expires.
_REPLACE = """
local was = redis.call('HMGET', KEYS[1], 'version', 'added_at')
if not was[1] or tonumber(was[1]) + 1 ~= tonumber(ARGV[4]) then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[3], 'version', ARGV[4], 'sealed', ARGV[5], 'expires_at', ARGV[6])
redis.call('ZADD', KEYS[2], ARGV[6], ARGV[2] .. ' ' .. ARGV[1])
for number = 6, #KEYS do redis.call('ZREM', KEYS[number], ARGV[1]) end
redis.call('ZADD', KEYS[4], was[2], ARGV[1])
return 1
"""

_FORGET = """
redis.call('ZREM', KEYS[2], ARGV[2] .. ' ' .. ARGV[1])
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
redis.call('ZREM', KEYS[3], ARGV[1])
for number = 6, #KEYS do redis.call('ZREM', KEYS[number], ARGV[1]) end
if redis.call('INCRBY', KEYS[5], -1) <= 0 then redis.call('DEL', KEYS[5]) end
return 1
"""

# KEYS: item, expiry, order, its state's order, number, orders in each state. ARGV: id, tenant, now.
_EXPIRE = f"""
local time = redis.call('ZSCORE', KEYS[2], ARGV[2] .. ' ' .. ARGV[1])
if not time or tonumber(time) > tonumber(ARGV[3]) then return 0 end
{_FORGET}"""


class RedisQueue:
    """The same in Redis. Changes are scripts: each happens as a whole or not at all."""

    def __init__(self, client: RedisClient) -> None:
        self._redis = client

    async def add(self, item: KeptItem, most: int) -> bool:
        values = (item.state, item.version, item.sealed, str(item.added_at), str(item.expires_at), most)
        command = script_command(
            _ADD, _names(item.tenant, item.item_id, item.state), item.item_id, item.tenant, *values
        )
        added = await self._redis.confirmed(command)
        if added < 0:
            raise QueueFull
        return bool(added)

    async def replace(self, item: KeptItem) -> bool:
        values = (item.state, item.version, item.sealed, str(item.expires_at))
        command = script_command(
            _REPLACE, _names(item.tenant, item.item_id, item.state), item.item_id, item.tenant, *values
        )
        return bool(await self._redis.confirmed(command))

    async def get(self, tenant: str, item_id: str) -> KeptItem | None:
        values = await self._redis.ask(("HMGET", _item(tenant, item_id), *_FIELDS))
        if values[0] is None:
            return None
        state, version, sealed, added_at, expires_at = values
        return KeptItem(
            item_id, tenant, state.decode(), int(version), sealed, float(added_at), float(expires_at)
        )

    async def listed(self, tenant: str, state: QueueState | None, offset: int, limit: int) -> list[KeptItem]:
        order = _order(tenant, state)
        ids = await self._redis.ask(("ZRANGE", order, offset, offset + limit - 1, "REV"))
        found = [await self.get(tenant, item_id.decode()) for item_id in ids]
        return [item for item in found if item is not None and state in (None, item.state)]

    async def delete(self, tenant: str, item_id: str) -> bool:
        command = script_command(_FORGET, _names(tenant, item_id, "new"), item_id, tenant)
        return bool(await self._redis.confirmed(command))

    async def expire(self, now: float) -> int:
        forgotten = 0
        for name in await self._redis.ask(("ZRANGEBYSCORE", _EXPIRY, "-inf", str(now))):
            tenant, item_id = name.decode().split(" ")
            command = script_command(_EXPIRE, _names(tenant, item_id, "new"), item_id, tenant, str(now))
            forgotten += await self._redis.confirmed(command)
        return forgotten

    async def close(self) -> None:
        await self._redis.close()


QueueStore = SqliteQueue | RedisQueue


def _names(tenant: str, item_id: str, state: QueueState) -> list[str]:
    orders = [_order(tenant, each) for each in ("new", "looked_at", "decided", "appealed")]
    count = f"{_QUEUE}:count:{tenant}"
    return [_item(tenant, item_id), _EXPIRY, _order(tenant, None), _order(tenant, state), count, *orders]


def _order(tenant: str, state: QueueState | None) -> str:
    return f"{_QUEUE}:of:{tenant}" if state is None else f"{_QUEUE}:of:{tenant}:{state}"


def _item(tenant: str, item_id: str) -> str:
    return f"{_QUEUE}:item:{tenant}:{item_id}"
