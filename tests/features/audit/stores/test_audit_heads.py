"""What a store knows of a chain: its writer and who removes old records change it at once."""

import asyncio
import secrets
from pathlib import Path
from typing import Any

import pytest

from tests.contract.keys.faulty_store import KEK
from tests.contract.keys.secured_redis import SecuredRedis
from tests.contract.keys.test_comes_back import becomes
from ttmark.services.features.audit.chain import Chain
from ttmark.services.features.audit.record import Anchor, Head
from ttmark.services.features.audit.trail import AuditTrail, Heads
from ttmark.services.settings.store import open_store
from ttmark.shared.events import Event
from ttmark.shared.vault.stores.store import RecordStore

DIGEST = "ab" * 32


async def test_neither_overwrites_the_other(store: RecordStore) -> None:
    writer, operator = Heads(store, KEK), Heads(store, KEK)
    await writer.put(Head("gen.0", 30, DIGEST))

    async def go_on() -> None:
        for number in range(31, 61):
            await writer.put(Head("gen.0", number, DIGEST))
            await asyncio.sleep(0.01)

    async def remove() -> None:
        for number in (5, 10, 20, 15):
            await operator.put_removed(Head("gen.0", number, DIGEST))

    await asyncio.gather(go_on(), remove())
    expected = Anchor(Head("gen.0", 60, DIGEST), Head("gen.0", 20, DIGEST))
    assert await Heads(store, KEK).read_all() == ({"gen.0": expected}, {})


async def test_a_service_writes_a_head_and_an_operator_what_was_removed(secured: SecuredRedis) -> None:
    chain = f"gen.{secrets.token_hex(4)}"
    stores = {role: open_store(secured.url(role)) for role in ("gen", "operator")}
    try:
        await Heads(stores["gen"], KEK).put(Head(chain, 9, DIGEST))
        heads = Heads(stores["operator"], KEK)  # as `ttmark audit prune` and `verify`
        await heads.put_removed(Head(chain, 5, DIGEST))
        assert (await heads.read_all())[0][chain].head.sequence == 9
    finally:
        for store in stores.values():
            await store.close()


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("longer", [0.0, 3.0, 7.0])
async def test_heads_that_redis_takes_down_come_back_with_it(
    redis_server: Any, tmp_path: Path, longer: float
) -> None:
    store = open_store(redis_server.url)
    async with AuditTrail(Chain(tmp_path, "detect"), Heads(store, KEK), keep=None) as trail:

        async def anchored() -> bool:
            before, _ = trail.unanchored, trail.hear(Event("key.generated", key_id="k"))
            return before < 40  # what some seconds bring

        assert await anchored()
        redis_server.pause()
        try:
            await becomes(anchored, False, 30)
            await asyncio.sleep(longer)
        finally:
            redis_server.resume()
        assert await becomes(anchored, True, 30) < 10
    await store.close()


async def test_heads_go_on_after_an_error_that_nobody_expected(
    store: RecordStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads, again, calls = Heads(store, KEK), asyncio.Event(), list[Head]()
    put = heads.put

    async def odd_once(head: Head) -> None:
        calls.append(head)
        if len(calls) == 1:
            raise RuntimeError("odd")
        again.set()
        await put(head)

    monkeypatch.setattr(heads, "put", odd_once)
    trail = AuditTrail(Chain(tmp_path, "detect"), heads, keep=None, every_seconds=0.01)
    async with trail, asyncio.timeout(10):
        trail.hear(Event("key.generated", key_id="k"))
        await again.wait()
