"""Revocations and rotations as running replicas learn of them."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.harness.waiting import eventually
from ttmark.services.cli.main import app
from ttmark.shared.keys.held_keys import KeyState
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.keys.rotation_by_volume import Rotation, rotate_due
from ttmark.shared.vault.stores.store import RecordStore


def ttmark(cluster: Any, *arguments: str) -> Any:
    return CliRunner().invoke(app, arguments, env=cluster.environment)


@pytest.mark.long
def test_a_revoked_token_is_refused_by_both_services_within_seconds(cluster, record_result):
    token = cluster.operator.token()
    for replica in cluster.replicas.values():
        assert replica.ask(token).status_code == 200
    assert ttmark(cluster, "tokens", "revoke", token.split("_")[1], "--yes").exit_code == 0
    began = time.monotonic()
    for replica in cluster.replicas.values():
        eventually(lambda replica=replica: replica.ask(token).status_code == 401)
    seconds = time.monotonic() - began
    assert seconds < 5
    record_result(
        "a token revoked under two replicas of each service",
        "refused within seconds",
        f"by all within {seconds:.1f} s (each looks every 0.3 s in this test, every 2 s by default)",
    )


@pytest.fixture(autouse=True)
def _nobody_is_held(cluster: Any) -> Iterator[None]:
    yield
    cluster.held.clear()


def test_a_promotion_waits_for_the_replica_that_does_not_know_the_version_yet(cluster, record_result):
    name = f"rotated-{time.time_ns()}"  # a second run finds the key of the first
    cluster.operator.key(name)
    assert ttmark(cluster, "keys", "promote", name, "1").exit_code == 0
    cluster.held.add("detect-2")
    assert ttmark(cluster, "keys", "rotate", name).exit_code == 0
    time.sleep(1)
    refused = ttmark(cluster, "keys", "promote", name, "2")
    assert refused.exit_code == 1
    assert "not known yet to detect-2:" in refused.output
    assert "force" in refused.output
    release = time.monotonic() + 1
    threading.Timer(1, cluster.held.clear).start()
    waited = ttmark(cluster, "keys", "promote", name, "2", "--wait", "20")
    assert waited.exit_code == 0, waited.output
    late = time.monotonic() - release
    assert late >= 0
    record_result(
        "a version promoted while one of two replicas of a service does not know it",
        "waits",
        f"refused, naming the replica; with --wait done {late:.1f} s after the replica could read it",
    )


def test_after_a_promotion_new_texts_carry_the_new_version_and_old_ones_are_still_found(cluster):
    operator, name = cluster.operator, f"globex-{time.time_ns()}"
    operator.key(name, tenant=name)
    token = operator.token(tenant=name)
    generator, detector = cluster.of("gen")[0], cluster.of("detect")[0]
    for replica in (generator, detector):
        eventually(lambda replica=replica: replica.ask(token).status_code == 200)

    def write() -> dict[str, Any]:
        body = {"max_tokens": 200, "ignore_eos": True, "return_token_ids": True, "seed": 1}
        return dict(generator.ask(token, **body).json())

    def found(document: dict[str, Any]) -> tuple[str, int]:
        ids = document["choices"][0]["token_ids"]
        result = detector.ask(token, inputs=[{"token_ids": ids}], fpr=1e-3).json()["results"][0]
        return result["verdict"], (result["key"] or {}).get("version", 0)

    before = write()
    operator.do(lambda ring, _: ring.rotate(name))
    assert ttmark(cluster, "keys", "promote", name, "2", "--wait", "20").exit_code == 0
    eventually(lambda: write()["watermark"]["key_version"] == 2)
    after = write()
    assert found(before) == ("watermarked", 1)
    assert found(after) == ("watermarked", 2)
    operator.do(lambda ring, _: ring.disable(name, 1))
    eventually(lambda: found(before)[0] == "not_detected")
    assert found(after) == ("watermarked", 2)
    states = operator.do(lambda ring, _: ring.info(name)).versions
    assert [version.state for version in states] == [KeyState.DISABLED, KeyState.PRIMARY]


def test_completions_fill_a_version_and_the_next_one_is_detected_by_all(cluster, kek):
    operator = cluster.operator
    tenant = f"initech-{time.time_ns()}"
    operator.key(tenant, tenant=tenant)
    token = operator.token(tenant=tenant)
    operator.do(lambda ring, _: ring.rotate_after(tenant, 32))
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
