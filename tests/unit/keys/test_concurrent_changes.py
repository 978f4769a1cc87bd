"""What changes while a key-encryption key takes its time, as a remote one does, is no step back in time."""

import asyncio

import pytest

from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.key_store_errors import RecordRolledBack
from ttmark.shared.vault.ledger import Ledger
from ttmark.shared.vault.store import RecordStore, Stored
from ttmark.shared.vault.vault import Vault


class SlowKek(KeyEncryptionKey):
    """Unwraps only once it is let, where it is held."""

    __slots__ = ("held", "waiting")

    def __init__(self) -> None:
        super().__init__(bytes(32))
        self.held = asyncio.Event()
        self.held.set()
        self.waiting = asyncio.Event()

    async def unwrap(self, kek_id: str, wrapped: bytes, associated: bytes) -> bytes:
        self.waiting.set()
        await self.held.wait()
        return await super().unwrap(kek_id, wrapped, associated)


@pytest.fixture
async def slow() -> SlowKek:
    return SlowKek()


async def test_a_read_that_a_change_overtakes_is_no_rollback(
    store: RecordStore, slow: SlowKek, profile: Profile
) -> None:
    ledger = Ledger()
    writer = KeyRing(store, slow, ledger=ledger)
    await writer.create("k", tenant="t", profile=profile)
    reader = KeyRing(store, slow, ledger=ledger)
    slow.held.clear()
    slow.waiting.clear()
    reading = asyncio.create_task(reader.open_all())
    await slow.waiting.wait()
    await writer.rotate("k")  # what it opened before is not unwrapped again
    slow.held.set()
    keys, problems = await reading
    assert problems == {}
    assert keys["k"].epoch == 1
    assert (await reader.info("k")).versions[-1].version == 2


async def test_a_change_that_another_one_overtakes_is_done(
    store: RecordStore, slow: SlowKek, profile: Profile
) -> None:
    ledger = Ledger()
    rings = [KeyRing(store, slow, ledger=ledger) for _ in range(5)]
    await rings[0].create("k", tenant="t", profile=profile)
    await asyncio.gather(*(ring.rotate_after("k", number + 1) for number, ring in enumerate(rings)))
    assert await rings[0].info("k") == await rings[1].info("k")


async def test_a_record_that_is_made_while_others_are_listed_is_not_gone(
    store: RecordStore, slow: SlowKek, profile: Profile
) -> None:
    ledger = Ledger()
    writer = KeyRing(store, slow, ledger=ledger)
    await writer.create("a", tenant="t", profile=profile)
    slow.held.clear()
    slow.waiting.clear()
    listing = asyncio.create_task(KeyRing(store, slow, ledger=ledger).open_all())
    await slow.waiting.wait()
    await writer.create("b", tenant="t", profile=profile)
    slow.held.set()
    _, problems = await listing
    assert problems == {}


async def test_an_answer_from_before_what_was_seen_before_is_a_rollback(
    store: RecordStore, slow: SlowKek, profile: Profile
) -> None:
    """Also while somebody changes the record: that others write excuses only what was the latest then."""
    ledger = Ledger()
    writer = KeyRing(store, slow, ledger=ledger)
    await writer.create("k", tenant="t", profile=profile)
    old = await store.get("key", "k")
    assert old is not None
    await writer.rotate("k")

    class Past:
        async def get(self, kind: str, record_id: str) -> Stored | None:
            await writer.promote("k", 2, force=True)
            return old

    with pytest.raises(RecordRolledBack, match="epoch 1 in the store, 2 seen before"):
        await Vault(Past(), slow, ledger).read("key", "k")  # type: ignore[arg-type]
