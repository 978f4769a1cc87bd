"""Keys are changed and read while Redis is killed, stopped, cut off, slowed down and set back."""

import shutil
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.keys.faulty_store import FAULTS, KEK, Workload, faulty_history
from ttmark.shared.keys.backup import create_backup, restore_backup
from ttmark.shared.vault.stores.key_store_errors import RecordRolledBack

pytestmark = pytest.mark.long


@pytest.fixture
def own_redis(start_redis: Callable[..., Any]) -> Any:
    return start_redis()


@pytest.mark.parametrize(("operations", "seed"), [(600, 1), pytest.param(20_000, 2, marks=pytest.mark.slow)])
async def test_no_acknowledged_change_is_lost_while_redis_and_the_network_fail(
    own_redis: Any, record_result: Any, operations: int, seed: int
) -> None:
    workload, recoveries = await faulty_history(own_redis, operations, seed)
    assert workload.violations == []
    assert workload.counts["noticed"] == 0
    assert workload.wrong_keys() == []
    assert recoveries.keys() == FAULTS.keys()
    assert workload.counts["unanswered"] > 0
    worst = max(recoveries.values())
    counts = workload.counts
    faults = "redis killed, paused, partitioned, slow, answering late, resetting"
    record_result(
        f"{faults}, during {operations:,} operations",
        "0 acknowledged changes lost, 0 wrong keys served, recovery <= 5 s",
        f"{counts['acknowledged']:,} acknowledged, {counts['refused']:,} refused, {counts['unanswered']:,}"
        f" unanswered; {len(workload.violations)} lost, {len(workload.wrong_keys())} wrong keys;"
        f" slowest recovery {worst:.1f} s",
    )
    assert operations == 600 or worst <= 5


@pytest.mark.parametrize("setback", ["empty", "stale"])
async def test_a_store_that_went_back_in_time_is_noticed_by_everyone_and_a_backup_brings_it_back(
    own_redis: Any, setback: str
) -> None:
    """`empty`: everything is gone. `stale`: an old copy is back, without the last changes."""
    workload = Workload(own_redis.url, seed=3)
    await workload.start()
    await workload.run(60)
    stale = own_redis.folder / "stale"
    shutil.copytree(own_redis.folder / "appendonlydir", stale)
    await workload.change_every_key()
    for cache in workload.caches:
        await cache.refresh()
    backup = await create_backup(workload.stores[0], KEK)
    before = {key_id: await workload.ring.open(key_id) for key_id in workload.histories}
    own_redis.kill()
    own_redis.forget_everything()
    if setback == "stale":
        shutil.copytree(stale, own_redis.folder / "appendonlydir")
    own_redis.start()

    for key_id in workload.histories:
        with pytest.raises(RecordRolledBack):
            await workload.ring.rotate(key_id)
    for cache in workload.caches:
        await cache.refresh()
        assert set(cache.problems) == set(workload.histories)
        for key_id, key in before.items():
            known = cache.get(key_id)
            assert known is not None
            assert [v.prf_key for v in known.versions] == [v.prf_key for v in key.versions]
    assert workload.violations == []
    if setback == "empty":
        await restore_backup(workload.stores[0], KEK, backup)
        for cache in workload.caches:
            await cache.refresh()
            assert cache.problems == {}
        await workload.run(60)
        assert workload.violations == []
        assert workload.counts["noticed"] == 0
    await workload.stop()
