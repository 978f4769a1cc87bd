"""Spaces that all replicas share, in Redis: what `LocalSpaces` does, as one script."""

from typing import cast

from ttmark.shared.limits.variants import CAPACITY, CELLS, DIGESTS, REASONS, RUN, Inquiry, Refusal
from ttmark.shared.vault.redis_conversation import Command, Conversation
from ttmark.shared.vault.redis_location import HASH_TAG

# Of each generation three keys: `cells`, a byte for each; `digests`, 8 bytes at each place; `sums`, a hash.
# Commands hold at most 1,500 operations: Lua unpacks no more than some 8,000 values.
_SCRIPT = """
local limit, price, budget = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local capacity, places, run = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local caller, lifetime = 'spent:' .. ARGV[7], ARGV[8]

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

local function is_variant(current, before)
  local total, most, length = 0, 0, math.min(run, #current)
  local hot = {}
  for i = 1, #current do
    hot[i] = (current[i] + (before and before[i] or 0) >= limit) and 1 or 0
    total = total + hot[i] - (i > length and hot[i - length] or 0)
    most = math.max(most, total)
  end
  return #current > 0 and most >= math.min(5, math.floor((#current + 1) / 2))
end

local function flag(condition) return condition and 1 or 0 end

local spent_now, spent_before = sum(KEYS[3], caller), sum(KEYS[6], caller)
local filled_now, filled_before = sum(KEYS[3], 'filled'), sum(KEYS[6], 'filled')
local spent, filled, known, grown, refusal = 0, 0, {}, {}, nil

-- At its full length from the start: what grows is given twice the room that it needs.
for i, length in ipairs({tonumber(ARGV[9]), 8 * places}) do
  if redis.call('GETRANGE', KEYS[i], length - 1, length - 1) == '' then
    redis.call('SETRANGE', KEYS[i], length - 1, '\\0')
  end
end

local function examine(index, cells, distinct)
  local current, before = bitfield(KEYS[1], cells, 'GET'), bitfield(KEYS[4], cells, 'GET')
  if is_variant(current, before) then return {1, index, flag(is_variant(current))} end
  local mine = spent_now + spent + price
  if mine + spent_before > budget then return {2, index, flag(mine > budget)} end
  local held = filled_now + filled + #distinct
  if held + filled_before > capacity then return {3, index, flag(held > capacity)} end
  local replies = bitfield(KEYS[1], distinct, 'INCRBY', 1)
  for i, cell in ipairs(distinct) do
    if replies[i] then grown[#grown + 1] = cell end
  end
  spent, filled = spent + price, filled + #distinct
end

local fresh = {}
for i = 10, #ARGV, 2 do
  local digest, packed = ARGV[i], ARGV[i + 1]
  local place = 8 * (struct.unpack('>I4', digest) % places)
  if not (known[digest] or redis.call('GETRANGE', KEYS[2], place, place + 7) == digest
      or redis.call('GETRANGE', KEYS[5], place, place + 7) == digest) then
    local cells, distinct, met = {}, {}, {}
    for at = 1, #packed, 4 do
      local cell = struct.unpack('>I4', packed, at)
      cells[#cells + 1] = cell
      if not met[cell] then
        met[cell] = true
        distinct[#distinct + 1] = cell
      end
    end
    refusal = examine((i - 10) / 2, cells, distinct)
    if refusal then break end
    known[digest] = true
    fresh[#fresh + 1] = {place, digest}
  end
end
if refusal then
  -- A cell may be in several documents: each time it is taken back once.
  bitfield(KEYS[1], grown, 'INCRBY', -1)
elseif #fresh > 0 then
  for _, one in ipairs(fresh) do redis.call('SETRANGE', KEYS[2], one[1], one[2]) end
  redis.call('HINCRBY', KEYS[3], caller, spent)
  redis.call('HINCRBY', KEYS[3], 'filled', filled)
end
for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], lifetime) end
return refusal or {0, 0, 0}
"""


async def ask(redis: Conversation, inquiry: Inquiry) -> Refusal | None:
    """Counts the questions of a request; or none of them, and says why.

    Raises:
        RedisError: the script could not be run.
    """
    number = inquiry.generation
    keys = [
        f"{HASH_TAG}:count:near:{inquiry.space}:{generation}:{part}"
        for generation in (number, number - 1)
        for part in ("cells", "digests", "sums")
    ]
    command: list[str | bytes | int] = ["EVAL", _SCRIPT, len(keys), *keys]
    command += [inquiry.rule.limit, inquiry.price, inquiry.budget, CAPACITY, DIGESTS, RUN]
    command += [inquiry.caller, int(2000 * inquiry.span), CELLS]
    for question in inquiry.questions:
        command += [question.digest, question.cells.astype(">u4").tobytes()]
    (reply,) = await redis.ask(cast(Command, command))
    reason, index, alone = map(int, reply)
    return inquiry.refusal(REASONS[reason - 1], index, alone=bool(alone)) if reason else None
