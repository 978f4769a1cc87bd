-- Detection jobs in Redis; `redis_jobs.py` says what lies where. Each function is a change as a whole: it is called
-- by its name, the last of ARGV.

local calls = {}

-- Jobs of an earlier release count for all jobs and not for their tenant, whose sum never falls below 0.
local function add_bytes(all, of_tenant, change)
  redis.call('INCRBY', all, change)
  if redis.call('INCRBY', of_tenant, change) <= 0 then redis.call('DEL', of_tenant) end
end

local function remove(stream, tenants, entry, tenant)
  redis.pcall('XACK', stream, 'workers', entry)
  redis.call('XDEL', stream, entry)
  if redis.call('XLEN', stream) == 0 then
    redis.call('DEL', stream)
    redis.call('ZREM', tenants, tenant)
  end
end

-- Whether a worker, the first of ARGV, has the entry, the second, of a job that is there; and how often it was claimed.
local function held()
  local pending = redis.pcall('XPENDING', KEYS[1], 'workers', ARGV[2], ARGV[2], 1)
  if pending.err or not pending[1] or pending[1][2] ~= ARGV[1] then return false end
  return redis.call('EXISTS', KEYS[2]) == 1, pending[1][4]
end

-- KEYS: job, jobs of the tenant, expiry, bytes, documents of the job, bytes of the tenant. ARGV: id, tenant,
-- head, documents, parts, size, room for a result, most jobs, most bytes of the tenant, most bytes, when what
-- is written so far may be forgotten. Gives why not, or nothing.
-- What another request has written under this id and has not started is given up for this one.
function calls.reserve()
  local was = redis.call('HMGET', KEYS[1], 'expires_at', 'bytes', 'head')
  if was[1] then return 'there' end
  if was[3] == ARGV[3] then return nil end
  if not was[2] and redis.call('SCARD', KEYS[2]) >= tonumber(ARGV[8]) then return 'jobs' end
  local more = ARGV[6] - (was[2] or 0)
  local of_tenant = (redis.call('GET', KEYS[6]) or 0) + more
  if of_tenant > tonumber(ARGV[9]) then return 'tenant' end
  if (redis.call('GET', KEYS[4]) or 0) + more + of_tenant > tonumber(ARGV[10]) then return 'bytes' end
  redis.call('DEL', KEYS[5])
  redis.call('HSET', KEYS[1], 'tenant', ARGV[2], 'head', ARGV[3], 'documents', ARGV[4], 'parts', ARGV[5],
             'answered', 0, 'failed', 0, 'done', 0, 'bytes', ARGV[6], 'room', ARGV[7])
  redis.call('SADD', KEYS[2], ARGV[1])
  redis.call('ZADD', KEYS[3], ARGV[11], ARGV[1])
  add_bytes(KEYS[4], KEYS[6], more)
  return nil
end

-- KEYS: job, its documents. ARGV: head, then numbers of parts and their documents.
function calls.write()
  if redis.call('HGET', KEYS[1], 'head') ~= ARGV[1] then return end
  for place = 2, #ARGV - 1, 2 do redis.call('HSET', KEYS[2], ARGV[place], ARGV[place + 1]) end
end

-- KEYS: job, stream of the tenant, tenants, expiry, waiting. ARGV: id, tenant, when the job expires, head.
-- Gives whether the job is there: not where another request writes under this id, or time ran out.
function calls.start()
  if redis.call('HEXISTS', KEYS[1], 'expires_at') == 1 then return 1 end
  if redis.call('HGET', KEYS[1], 'head') ~= ARGV[4] then return 0 end
  redis.call('HSET', KEYS[1], 'expires_at', ARGV[3])
  redis.call('ZADD', KEYS[4], ARGV[3], ARGV[1])
  redis.call('INCRBY', KEYS[5], redis.call('HGET', KEYS[1], 'documents'))
  redis.pcall('XGROUP', 'CREATE', KEYS[2], 'workers', '0', 'MKSTREAM')
  redis.call('ZADD', KEYS[3], 'NX', 0, ARGV[2])
  for part = 0, redis.call('HGET', KEYS[1], 'parts') - 1 do
    redis.call('XADD', KEYS[2], '*', 'job', ARGV[1], 'part', part)
  end
  return 1
end

-- KEYS: stream, tenants. ARGV: worker, milliseconds after which a lease has run out, tenant, now.
-- Gives entry, job, part and how often it was claimed.
function calls.claim()
  local found, cursor = nil, '0-0'
  repeat
    local reply = redis.pcall('XAUTOCLAIM', KEYS[1], 'workers', ARGV[1], ARGV[2], cursor, 'COUNT', 1)
    if reply.err then return nil end
    cursor, found = reply[1], reply[2][1]
  until found or cursor == '0-0'
  if not found then
    local reply = redis.call('XREADGROUP', 'GROUP', 'workers', ARGV[1], 'COUNT', 1, 'STREAMS', KEYS[1], '>')
    found = reply and reply[1][2][1]
  end
  if not found then return nil end
  redis.call('ZADD', KEYS[2], ARGV[4], ARGV[3])
  local pending = redis.call('XPENDING', KEYS[1], 'workers', found[1], found[1], 1)
  return {found[1], found[2][2], found[2][4], pending[1][4]}
end

-- KEYS: stream, tenants. ARGV: entry, tenant.
function calls.drop()
  remove(KEYS[1], KEYS[2], ARGV[1], ARGV[2])
end

-- KEYS: stream, job. ARGV: worker, entry.
function calls.renew()
  if not held() then return 0 end
  redis.call('XCLAIM', KEYS[1], 'workers', ARGV[1], 0, ARGV[2], 'IDLE', 0, 'JUSTID')
  return 1
end

-- KEYS: stream, job. ARGV: worker, entry. Nobody's for so long that every lease of it has run out.
function calls.release()
  local is_held, attempts = held()
  if not is_held then return 0 end
  redis.call('XCLAIM', KEYS[1], 'workers', 'nobody', 0, ARGV[2], 'IDLE', 1000000000,
             'RETRYCOUNT', attempts - 1, 'JUSTID')
  return 1
end

-- KEYS: job, its documents, its results, stream, tenants, expiry, bytes, waiting, calls, bytes of the tenant.
-- ARGV: part, entry, results, answered, failed, now, when the job expires if it is finished, whether to call
-- then, id, tenant.
function calls.answer()
  local first = 0
  if redis.call('HEXISTS', KEYS[1], 'expires_at') == 1
      and redis.call('HSETNX', KEYS[3], ARGV[1], ARGV[3]) == 1 then
    first = 1
    local room = (redis.call('HGET', KEYS[1], 'room') or 0) * ARGV[4]
    local change = #ARGV[3] - redis.call('HSTRLEN', KEYS[2], ARGV[1]) - room
    redis.call('HDEL', KEYS[2], ARGV[1])
    redis.call('HINCRBY', KEYS[1], 'bytes', change)
    add_bytes(KEYS[7], KEYS[10], change)
    redis.call('HINCRBY', KEYS[1], 'answered', ARGV[4])
    redis.call('HINCRBY', KEYS[1], 'failed', ARGV[5])
    redis.call('INCRBY', KEYS[8], -ARGV[4])
    if redis.call('HINCRBY', KEYS[1], 'done', 1) == tonumber(redis.call('HGET', KEYS[1], 'parts')) then
      redis.call('HSET', KEYS[1], 'finished_at', ARGV[6], 'expires_at', ARGV[7])
      redis.call('ZADD', KEYS[6], ARGV[7], ARGV[9])
      if ARGV[8] == '1' then redis.call('ZADD', KEYS[9], ARGV[6], ARGV[9]) end
    end
  end
  remove(KEYS[4], KEYS[5], ARGV[2], ARGV[10])
  return first
end

-- KEYS: job, its documents, its results, jobs of the tenant, expiry, calls, bytes, waiting, bytes of the
-- tenant. ARGV: id.
function calls.forget()
  local was = redis.call('HMGET', KEYS[1], 'bytes', 'documents', 'answered', 'expires_at')
  redis.call('ZREM', KEYS[5], ARGV[1])
  redis.call('ZREM', KEYS[6], ARGV[1])
  redis.call('SREM', KEYS[4], ARGV[1])
  redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
  if not was[1] then return 0 end
  add_bytes(KEYS[7], KEYS[9], -was[1])
  if was[4] then redis.call('INCRBY', KEYS[8], was[3] - was[2]) end
  return 1
end

-- KEYS: calls, job. ARGV: id, now, seconds to the next attempt. Gives the number of this attempt, 0: not due.
function calls.call()
  local due = redis.call('ZSCORE', KEYS[1], ARGV[1])
  if not due or tonumber(due) > tonumber(ARGV[2]) then return 0 end
  local attempt = redis.call('HINCRBY', KEYS[2], 'calls', 1)
  redis.call('ZADD', KEYS[1], ARGV[2] + ARGV[3] * 2 ^ (attempt - 1), ARGV[1])
  return attempt
end

return calls[ARGV[#ARGV]]()
