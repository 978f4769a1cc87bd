"""What a paused Redis takes down comes back by itself, within the seconds of `operations/comes-back.md`."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import count
from typing import Any

import numpy as np
import pytest

from tests.contract.keys.faulty_store import KEK
from ttmark.services.settings.store import open_counters, open_store
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.keys.rotation_by_volume import VolumeCounter
from ttmark.shared.limits.counting_filter import SPENT, CountedDocument, Inquiry
from ttmark.shared.vault.stores.key_store_errors import StoreUnavailable
from ttmark.shared.vault.stores.store import RecordStore

Works = Callable[[], Awaitable[bool]]
# Seconds from the return of Redis, on a busy machine: what its budget (4 s) and the rests of each allow.
WITHIN = {"counters": 2.0, "evidence": 2.0, "tokens": 6.0, "keys": 8.0, "volume": 10.0}


async def everything(url: str, running: AsyncExitStack) -> dict[str, Works]:
    """How each part tells, asked from outside, that it works."""
    store, other, counters = open_store(url), open_store(url), open_counters(url)
    for one in (store, other, counters):
        running.push_async_callback(one.close)
    tokens, makers = TokenRegistry(store, KEK), TokenRegistry(other, KEK)
    running.callback(tokens.close)
    unseen = [(await makers.create(tenant="acme", scopes=[Scope.DETECT]))[0] for _ in range(60)]
    cache = KeyCache(KeyRing(store, KEK), refresh_seconds=0.5)
    await cache.start()
    running.push_async_callback(cache.stop)
    volume = VolumeCounter(store, lambda: ())
    await running.enter_async_context(volume)
    numbers, cells = count(), np.arange(300, dtype=np.uint32)[None]

    async def counts_together() -> bool:
        await counters.add("a", 1, lifetime_seconds=60)
        return counters.shared

    async def evidence_is_spent() -> bool:
        asked = CountedDocument(next(numbers).to_bytes(8, "big"), cells)
        (reply,) = await counters.ask(Inquiry("space", "caller", [asked], [12], 86_400.0, 1.0, 43_200.0))
        return bool((reply.states >= SPENT).all())

    for _ in range(12):
        assert not await evidence_is_spent()

    async def an_unseen_token_opens() -> bool:
        try:
            return bool(await tokens.authenticate(unseen.pop()))
        except StoreUnavailable:
            return False

    async def keys_are_read() -> bool:
        return cache.last_error is None

    async def volume_is_reported() -> bool:
        before, _ = volume.unreported, volume.count("k", 1, 1)
        return before < 40  # what some seconds bring

    parts = (counts_together, evidence_is_spent, an_unseen_token_opens, keys_are_read)
    return dict(zip(WITHIN, (*parts, volume_is_reported), strict=True))


async def becomes(works: Works, wanted: bool, within: float) -> float:
    began = time.monotonic()
    while await works() is not wanted:
        assert time.monotonic() - began < within
        await asyncio.sleep(0.1)
    return time.monotonic() - began


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("longer", [0.0, 3.0, 7.0])  # into the rests of each
async def test_what_redis_takes_down_comes_back_with_it(redis_server: Any, longer: float) -> None:
    async with AsyncExitStack() as running:
        parts = await everything(redis_server.url, running)
        assert all([await works() for works in parts.values()])
        redis_server.pause()
        try:
            await asyncio.gather(*(becomes(works, False, 30) for works in parts.values()))
            await asyncio.sleep(longer)
        finally:
            redis_server.resume()
        took = await asyncio.gather(*(becomes(works, True, 30) for works in parts.values()))
    measured = dict(zip(parts, took, strict=True))
    print({name: round(seconds, 1) for name, seconds in measured.items()})
    assert {name for name, seconds in measured.items() if seconds > WITHIN[name]} == set()


@pytest.mark.parametrize("part", ["keys", "volume"])
async def test_work_in_the_background_outlives_an_error_that_nobody_expected(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    ring, again, calls = KeyRing(store, KEK), asyncio.Event(), []
    owner, name = {"keys": (ring, "open_all"), "volume": (store, "add")}[part]
    real = getattr(owner, name)

    async def odd_once(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 1:
            raise RuntimeError("odd")
        again.set()
        return await real(*arguments)

    monkeypatch.setattr(owner, name, odd_once)
    cache = KeyCache(ring, refresh_seconds=0.01)
    async with VolumeCounter(store, lambda: (), every_seconds=0.01), asyncio.timeout(10):
        await cache.start()
        await again.wait()
        await cache.stop()
