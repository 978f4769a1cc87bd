-- Idempotency keys in Redis. Each function is a change as a whole; it is called by its name, the last of ARGV.

local calls = {}

-- KEYS: entries, times, tenants. ARGV: name, tenant, what was there, entry, until when, most entries. A script
-- whose reply was lost is run again: its entry is there then, and no other is like it.
function calls.put()
  local held = redis.call('HGET', KEYS[1], ARGV[1]) or ''
  if held == ARGV[4] then return 1 end
  if held ~= ARGV[3] then return 0 end
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[4])
  redis.call('ZADD', KEYS[2], ARGV[5], ARGV[1])
  redis.call('ZADD', KEYS[3], ARGV[5], ARGV[2])
  for _, name in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1 - ARGV[6])) do
    redis.call('HDEL', KEYS[1], name)
    redis.call('ZREM', KEYS[2], name)
  end
  return 1
end

-- KEYS: as above. ARGV: name, tenant, what was there.
function calls.remove()
  if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[3] then return end
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
end

-- KEYS: as above. ARGV: now, tenant.
function calls.expire()
  local latest = redis.call('ZSCORE', KEYS[3], ARGV[2])
  if latest and tonumber(latest) <= tonumber(ARGV[1]) then
    redis.call('DEL', KEYS[1], KEYS[2])
    redis.call('ZREM', KEYS[3], ARGV[2])
  end
end

return calls[ARGV[#ARGV]]()
