"""Cases in Redis.

`{ttmark}:case:<id>` is a case. `{ttmark}:cases:*` are when each expires, what all take, and what each
tenant's take. As with jobs nothing expires by itself: Redis would evict it when its memory is full.
"""

from ttmark.detect_service.cases.case_store import CaseRoom, CaseStoreFull, KeptCase, TenantStoreFull
from ttmark.detect_service.once.redis_keys import RedisKeys
from ttmark.detect_service.once.request_keys import RequestKeys
from ttmark.shared.vault.redis_client import RedisChanges, RedisClient, script_command
from ttmark.shared.vault.redis_connections import HASH_TAG

_CASES = f"{HASH_TAG}:cases"
_EXPIRY, _BYTES = f"{_CASES}:expiry", f"{_CASES}:bytes"

# KEYS: case, expiry, bytes, bytes of the tenant. ARGV: id, tenant, sealed, when it expires, most bytes of the
# tenant, most bytes of all. Gives why not, or nothing.
_KEEP = """
if redis.call('EXISTS', KEYS[1]) == 1 then return nil end
local size = #ARGV[3]
if tonumber(redis.call('GET', KEYS[4]) or '0') + size > tonumber(ARGV[5]) then return 'tenant' end
if tonumber(redis.call('GET', KEYS[3]) or '0') + size > tonumber(ARGV[6]) then return 'all' end
redis.call('HSET', KEYS[1], 'tenant', ARGV[2], 'sealed', ARGV[3], 'expires_at', ARGV[4])
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
redis.call('INCRBY', KEYS[3], size)
redis.call('INCRBY', KEYS[4], size)
return nil
"""

# KEYS: as above. ARGV: id, tenant.
_FORGET = """
local was = redis.call('HMGET', KEYS[1], 'tenant', 'sealed')
if was[1] ~= ARGV[2] then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('DEL', KEYS[1])
redis.call('INCRBY', KEYS[3], -#was[2])
if redis.call('INCRBY', KEYS[4], -#was[2]) <= 0 then redis.call('DEL', KEYS[4]) end
return 1
"""


class RedisCases:
    """CaseStore in Redis. Changes are scripts: each happens as a whole or not at all."""

    def __init__(self, client: RedisClient) -> None:
        self._redis = RedisChanges(client)
        self.keys: RequestKeys = RedisKeys(self._redis, _CASES)

    async def keep(self, case: KeptCase, room: CaseRoom) -> None:
        values = (case.case_id, case.tenant, case.sealed, str(case.expires_at), room.of_tenant, room.of_all)
        refusal = await self._redis.confirmed(
            script_command(_KEEP, _names(case.tenant, case.case_id), *values)
        )
        if refusal == b"tenant":
            raise TenantStoreFull
        if refusal == b"all":
            raise CaseStoreFull

    async def get(self, tenant: str, case_id: str) -> KeptCase | None:
        of, sealed, expires_at = await self._redis.ask(
            ("HMGET", _case(case_id), "tenant", "sealed", "expires_at")
        )
        if of is None or of.decode() != tenant:
            return None
        return KeptCase(case_id, tenant, sealed, float(expires_at))

    async def delete(self, tenant: str, case_id: str) -> bool:
        command = script_command(_FORGET, _names(tenant, case_id), case_id, tenant)
        return bool(await self._redis.confirmed(command))

    async def expire(self, now: float) -> int:
        forgotten = 0
        for name in await self._redis.ask(("ZRANGEBYSCORE", _EXPIRY, "-inf", str(now))):
            case_id = name.decode()
            tenant = await self._redis.ask(("HGET", _case(case_id), "tenant"))
            forgotten += tenant is not None and await self.delete(tenant.decode(), case_id)
        return forgotten

    async def close(self) -> None:
        await self._redis.close()


def _names(tenant: str, case_id: str) -> list[str]:
    return [_case(case_id), _EXPIRY, _BYTES, f"{_BYTES}:{tenant}"]


def _case(case_id: str) -> str:
    return f"{HASH_TAG}:case:{case_id}"
