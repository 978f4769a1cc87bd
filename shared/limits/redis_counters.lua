-- Counts the questions of an `Inquiry` in the spaces that all replicas share; `LocalSpaces` does the same in Python.
-- KEYS: of a generation and of the one before three each: `cells`, a byte for each; `answered`, states by digest;
-- `sums`, a hash. Commands hold at most 1,500 operations: Lua unpacks no more than some 8,000 values.

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
  redis.call('SETRANGE', KEYS[1], length - 1, '\0')
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
for i = 8 + layers, #ARGV - 1, 3 do
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
