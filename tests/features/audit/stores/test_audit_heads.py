"""What a store knows of a chain: its writer and who removes old records change it at once."""

import asyncio

from tests.contract.keys.faulty_store import KEK
from ttmark.services.features.audit.record import Anchor, Head
from ttmark.services.features.audit.trail import Heads
from ttmark.shared.vault.store import RecordStore

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
