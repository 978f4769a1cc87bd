"""Records that were written otherwise or branched off are refused; the rest is in `test_tampering.py`."""

import orjson
import pytest

from ttmark.shared.vault.envelope import TRAIL_LENGTH, Envelope, open_envelope, seal_envelope
from ttmark.shared.vault.kek import DataKey, KeyEncryptionKey
from ttmark.shared.vault.ledger import Ledger
from ttmark.shared.vault.stores.key_store_errors import RecordRolledBack, RecordTampered


async def sealed(kek: KeyEncryptionKey, count: int) -> list[Envelope]:
    envelopes: list[Envelope] = []
    for number in range(count):
        previous = envelopes[-1] if envelopes else None
        key = previous.data_key if previous else DataKey.generate()
        envelopes.append(await seal_envelope(kek, "key", "k", {"number": number}, key, previous))
    return envelopes


def test_a_key_encryption_key_is_named_in_records_by_16_digits_that_do_not_change() -> None:
    assert KeyEncryptionKey(bytes(32)).kek_id == "54ac65d168e1934c"


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
