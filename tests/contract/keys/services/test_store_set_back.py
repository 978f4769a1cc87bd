"""A store that restarts empty under running services: refused, noticed, served on from memory."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.harness.waiting import eventually
from ttmark.shared.keys.backup import create_backup, restore_backup


def test_a_store_that_restarts_empty_is_noticed_and_the_services_go_on_with_what_they_know(
    cluster: Any, own_redis: Any, kek: Any, record_result: Any, tmp_path: Path
) -> None:
    ledger = {"TTMARK_LEDGER_FILE": str(tmp_path / "ledger.json")}
    token, unseen = cluster.operator.token(), cluster.operator.token()
    for name in ("gen-8", "detect-8"):
        replica = cluster.start(name, ledger)
        eventually(lambda replica=replica: replica.ready)
    running = list(cluster.replicas.values())
    assert [replica.ask(token).status_code for replica in running] == [200] * len(running)
    kept = cluster.operator.on_store(lambda store: create_backup(store, kek))

    own_redis.kill()
    own_redis.forget_everything()
    own_redis.start()
    noticed = sum(
        eventually(lambda replica=replica: replica.metric("ttmark_key_records_refused") > 0)
        for replica in running
    )
    time.sleep(1)
    # Keys and tokens that were known are the later ones; nobody forgets them.
    assert [replica.ask(token).status_code for replica in running] == [200] * len(running)
    assert all(replica.ready for replica in running)
    # Nobody can tell whether this one was valid: that is our problem and not its bearer's.
    assert [replica.ask(unseen).status_code for replica in running] == [503] * len(running)
    assert '"event":"key_record_refused"' in cluster.log.getvalue()
    assert '"action":"store.refuse"' in cluster.log.getvalue()

    cluster.stop("detect-8")
    cold = cluster.start("detect-8", ledger)
    time.sleep(1)
    assert not cold.ready
    assert cold.metric("ttmark_key_records_refused") > 0
    assert cold.ask(token).status_code == 503
    without_memory = cluster.start("detect-9")
    assert not without_memory.ready
    assert without_memory.ask(unseen).status_code == 503
    cluster.stop("detect-9")

    cluster.operator.on_store(lambda store: restore_backup(store, kek, kept))
    for replica in cluster.replicas.values():
        eventually(lambda replica=replica: replica.metric("ttmark_key_records_refused") == 0)
        eventually(lambda replica=replica: replica.ready)
        eventually(lambda replica=replica: replica.ask(token).status_code == 200)
        eventually(lambda replica=replica: replica.ask(unseen).status_code == 200)
    record_result(
        "store restarted empty under both running services",
        "refused, noticed, served on; a cold start is not ready",
        f"noticed by {len(running)} replicas within {noticed:.1f} s, known tokens and keys served on, "
        "unseen tokens and cold starts 503; all well again after the backup was restored",
    )
    for name in ("gen-8", "detect-8"):
        cluster.stop(name)


@pytest.mark.long
def test_without_the_store_known_tokens_and_keys_work_and_a_cold_start_is_not_ready(
    cluster: Any, own_redis: Any, record_result: Any
) -> None:
    token = cluster.operator.token()
    running = list(cluster.replicas.values())
    assert [replica.ask(token).status_code for replica in running] == [200] * len(running)
    own_redis.kill()
    try:
        for replica in running:
            eventually(lambda replica=replica: replica.metric("ttmark_key_store_reachable") == 0)
        assert [replica.ask(token).status_code for replica in running] == [200] * len(running)
        assert all(replica.ready for replica in running)
        assert '"event":"key_store_lost"' in cluster.log.getvalue()
        cold = cluster.start("gen-9")
        assert not cold.ready
        assert cold.ask(token).status_code == 503
        assert cold.ask("ttm_" + "0" * 16 + "_" + "0" * 64).status_code == 503
    finally:
        own_redis.start()
    seconds = eventually(lambda: cold.ready) + eventually(lambda: cold.ask(token).status_code == 200)
    record_result(
        "store away under both running services",
        "known tokens and keys go on; a cold start is not ready",
        f"{len(running)} replicas answered on, a cold start 503, and 200 within {seconds:.1f} s of the store",
    )
    for replica in running:
        eventually(lambda replica=replica: replica.metric("ttmark_key_store_reachable") == 1)
    cluster.stop("gen-9")
