"""Counters and spaces that all replicas share, in Redis."""

from collections.abc import Mapping, Sequence

from ttmark.shared.limits.counters import PARTS
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
from ttmark.shared.vault.redis_client import RedisClient, script_command
from ttmark.shared.vault.redis_connections import HASH_TAG, RedisAddress

# Of each generation three keys: `cells`, a byte for each; `answered`, states by digest; `sums`, a hash.
# Commands hold at most 1,500 operations: Lua unpacks no more than some 8,000 values.
_SCRIPT = """
local lifetime, capacity, least = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local budget, caller = tonumber(ARGV[4]), 'drawn:' .. ARGV[5]
local layers = tonumber(ARGV[7])

local function bitfield(key, cells, operation, ...)
  local replies = {}
  for first = 1, #cells, 1500 do
    local command = {'BITFIELD', key, 'OVERFLOW', 'FAIL'}
    for i = first, math.min(first + 1499, #cells) do
      command[#command + 1] = operation
      command[#command + 1] = 'u8'
      command[#command + 1] = '#' .. cells[i]
      for _, amount in ipairs({...}) do command[#command + 1] = amount end
    end
    for _, reply in ipairs(redis.call(unpack(command))) do replies[#replies + 1] = reply end
  end
  return replies
end

local function sum(key, field) return tonumber(redis.call('HGET', key, field) or '0') end
local function flag(condition) return condition and 1 or 0 end

local drawn_now, drawn_before = sum(KEYS[3], caller), sum(KEYS[6], caller)
local filled_now, filled_before = sum(KEYS[3], 'filled'), sum(KEYS[6], 'filled')
local drawn, filled = 0, 0

-- At its full length from the start: what grows is given twice the room that it needs.
local length = tonumber(ARGV[6])
if redis.call('GETRANGE', KEYS[1], length - 1, length - 1) == '' then
  redis.call('SETRANGE', KEYS[1], length - 1, '\\0')
end

local function count(packed, rows)
  local states, any = {}, false
  for row = 1, rows do states[row] = 0 end
  for layer = 0, layers - 1 do
    local limit, cells = tonumber(ARGV[8 + layer]), {}
    for row = 1, rows do cells[row] = struct.unpack('>I4', packed, 4 * (layer * rows + row) - 3) end
    local mine, before = bitfield(KEYS[1], cells, 'GET'), bitfield(KEYS[4], cells, 'GET')
    local fresh, met, half = {}, {}, math.ceil(limit / 2)
    for row, cell in ipairs(cells) do
      local answers = mine[row] + before[row]
      if answers >= limit then
        states[row] = math.max(states[row], mine[row] >= limit and 4 or 3)
      else
        if states[row] < 3 and not met[cell] then
          met[cell] = true
          fresh[#fresh + 1] = cell
        end
        if answers + 1 == half or answers + 1 == limit then states[row] = math.max(states[row], 2)
        elseif answers + 1 > half then states[row] = math.max(states[row], 1) end
      end
    end
    bitfield(KEYS[1], fresh, 'INCRBY', 1)
  end
  for row = 1, rows do
    any = any or states[row] > 0
    states[row] = string.char(states[row])
  end
  return any and table.concat(states) or ''
end

local replies = {}
for i = 8 + layers, #ARGV, 3 do
  local digest, price, packed = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local rows = #packed / (4 * layers)
  local known = redis.call('HGET', KEYS[2], digest) or redis.call('HGET', KEYS[5], digest)
  local mine, held = drawn_now + drawn + price, filled_now + filled + math.max(least, rows)
  if known then replies[#replies + 1] = {0, 0, known}
  elseif mine + drawn_before > budget then replies[#replies + 1] = {1, flag(mine > budget), ''}
  elseif held + filled_before > capacity then replies[#replies + 1] = {2, flag(held > capacity), ''}
  else
    local states = count(packed, rows)
    redis.call('HSET', KEYS[2], digest, states)
    drawn, filled = drawn + price, filled + math.max(least, rows)
    replies[#replies + 1] = {0, 0, states}
  end
end
redis.call('HINCRBY', KEYS[3], caller, drawn)
redis.call('HINCRBY', KEYS[3], 'filled', filled)
for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], lifetime) end
return replies
"""


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
        answers = await self._client.ask(script_command(_SCRIPT, keys, *values))
        replies = []
        for question, (reason, lasting, packed) in zip(inquiry.questions, answers, strict=True):
            refusal = None
            if reason:
                refusal = Refusal(STORE_REASONS[reason - 1], inquiry.wait_seconds(lasting=bool(lasting)))
            replies.append(Reply(states_of(packed, question.cells.shape[1]), refusal))
        return replies

    async def put(self, name: str, values: Mapping[bytes, bytes], *, lifetime_seconds: float) -> None:
        """One round trip."""
        key = f"{HASH_TAG}:count:{name}"
        fields = [part for pair in values.items() for part in pair]
        lifetime = ("PEXPIRE", key, int(1000 * lifetime_seconds))
        await self._client.ask_all(("HSET", key, *fields), lifetime)

    async def get(self, name: str, fields: Sequence[bytes]) -> list[bytes | None]:
        """One round trip."""
        return list(await self._client.ask(("HMGET", f"{HASH_TAG}:count:{name}", *fields)))

    async def close(self) -> None:
        await self._client.close()
