"""Rotation by volume with both services as they run: from a completion to a text under the next version."""

from tests.harness.waiting import eventually
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.keys.volume import Rotation, rotate_due
from ttmark.shared.vault.store import RecordStore


def test_completions_fill_a_version_and_the_next_one_is_detected_by_all(cluster, kek):
    operator = cluster.operator
    operator.key("initech-main", tenant="initech")
    token = operator.token(tenant="initech")
    operator.do(lambda ring, _: ring.rotate_after("initech-main", 32))
    replicas = cluster.of("gen")
    for replica in replicas:
        eventually(lambda replica=replica: replica.ask(token).status_code == 200)
        marked = replica.ask(token, max_tokens=12, ignore_eos=True).json()["watermark"]
        assert marked["key_version"] == 1
    for replica in replicas:  # both see what both have marked
        eventually(lambda replica=replica: replica.metric("ttmark_key_volume_share") >= 1, 30)

    async def upkeep(store: RecordStore) -> list[Rotation]:
        return await rotate_due(KeyRing(store, kek), await store.counts())

    def promoted() -> bool:
        return any(rotation.waits_for is None for rotation in operator.on_store(upkeep))

    eventually(promoted, 30)
    for replica in replicas:
        eventually(lambda replica=replica: replica.ask(token).json()["watermark"]["key_version"] == 2, 30)
        eventually(lambda replica=replica: replica.metric("ttmark_key_volume_share") < 1, 30)
