"""Records that were altered, moved, truncated or replayed are refused."""

import random

import orjson
import pytest

from ttmark.shared.vault.envelope import TRAIL_LENGTH, Envelope, open_envelope, seal_envelope
from ttmark.shared.vault.kek import DataKey, KeyEncryptionKey
from ttmark.shared.vault.key_store_errors import RecordRolledBack, RecordTampered, UnknownKek
from ttmark.shared.vault.ledger import Ledger


async def sealed(kek: KeyEncryptionKey, count: int) -> list[Envelope]:
    """A record and its successors."""
    envelopes: list[Envelope] = []
    for number in range(count):
        previous = envelopes[-1] if envelopes else None
        key = previous.data_key if previous else DataKey.generate()
        envelopes.append(await seal_envelope(kek, "key", "k", {"number": number}, key, previous))
    return envelopes


async def test_an_envelope_opens_under_its_own_name(kek: KeyEncryptionKey) -> None:
    (envelope,) = await sealed(kek, 1)
    opened = await open_envelope(kek, "key", "k", envelope.payload, 1)
    assert (opened.epoch, opened.body, opened.digest) == (1, {"number": 0}, envelope.digest)


async def test_any_single_altered_byte_is_refused(kek: KeyEncryptionKey) -> None:
    (envelope,) = await sealed(kek, 1)
    generator = random.Random(1)
    for position in range(len(envelope.payload)):
        payload = bytearray(envelope.payload)
        payload[position] ^= generator.randrange(1, 256)
        with pytest.raises((RecordTampered, UnknownKek)):
            await open_envelope(kek, "key", "k", bytes(payload), 1)


async def test_the_same_json_in_another_writing_is_refused(kek: KeyEncryptionKey) -> None:
    (envelope,) = await sealed(kek, 1)
    spaced = orjson.dumps(orjson.loads(envelope.payload), option=orjson.OPT_INDENT_2)
    with pytest.raises(RecordTampered):
        await open_envelope(kek, "key", "k", spaced, 1)


def check(ledger: Ledger, envelope: Envelope | None) -> None:
    ledger.check("key", "k", envelope, ledger.sighting("key", "k"))


async def test_a_history_that_branched_off_earlier_is_noticed(kek: KeyEncryptionKey) -> None:
    first, second = await sealed(kek, 2)
    ledger = Ledger()
    check(ledger, second)
    branch = first
    for number in range(10, 15):
        branch = await seal_envelope(kek, "key", "k", {"number": number}, first.data_key, branch)
        with pytest.raises(RecordRolledBack, match="another history"):
            check(ledger, branch)


async def test_any_descendant_is_accepted_however_far(kek: KeyEncryptionKey) -> None:
    envelopes = await sealed(kek, TRAIL_LENGTH + 20)
    for later in envelopes:
        ledger = Ledger()
        check(ledger, envelopes[0])
        check(ledger, later)
    assert len(envelopes[-1].trail) == TRAIL_LENGTH
