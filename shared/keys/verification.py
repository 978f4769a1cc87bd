"""Opens everything in a store and says what is wrong."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ttmark.shared.access import token_records
from ttmark.shared.access.token_records import load_token
from ttmark.shared.keys import key_codec
from ttmark.shared.keys.key_codec import load_record, unlock
from ttmark.shared.keys.records import KeyRecord, KeyState
from ttmark.shared.vault.kek import KeyWrapper
from ttmark.shared.vault.key_store_errors import KeyStoreError, RecordTampered
from ttmark.shared.vault.ledger import Ledger
from ttmark.shared.vault.store import RecordStore
from ttmark.shared.vault.vault import Vault


@dataclass(frozen=True, slots=True)
class Verification:
    """What a store holds.

    Attributes:
        keys, versions, tokens: how many open.
        keks: how many records each key-encryption key wraps.
        problems: by kind and id, in one line each.
    """

    keys: int
    versions: int
    tokens: int
    keks: Mapping[str, int]
    problems: Mapping[str, str]


async def verify_store(store: RecordStore, kek: KeyWrapper, ledger: Ledger | None = None) -> Verification:
    """Opens every secret of every key and every token.

    Raises:
        StoreUnavailable: the store is away.
    """
    vault = Vault(store, kek, ledger)
    problems: dict[str, str] = {}
    keks: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for kind in (key_codec.KIND, token_records.KIND):
        envelopes, unopened = await vault.read_all(kind)
        problems |= {f"{kind} {record_id}": str(error) for record_id, error in unopened.items()}
        for record_id, envelope in envelopes.items():
            keks[envelope.kek_id] += 1
            try:
                if kind == key_codec.KIND:
                    check_life_cycle(record_id, load_record(envelope))
                    counts["versions"] += len(unlock(envelope).versions)
                else:
                    load_token(envelope)
                counts[kind] += 1
            except KeyStoreError as error:
                problems[f"{kind} {record_id}"] = str(error)
    return Verification(
        counts[key_codec.KIND], counts["versions"], counts[token_records.KIND], dict(keks), problems
    )


def check_life_cycle(key_id: str, record: KeyRecord) -> None:
    """Refuses a key under another name, with two primaries, two pending versions, or a gap in its numbers.

    Raises:
        RecordTampered: one of these.
    """
    states = Counter(version.state for version in record.versions)
    numbers = [version.version for version in record.versions]
    if record.key_id != key_id:
        raise RecordTampered(f"key {key_id} calls itself {record.key_id}")
    if states[KeyState.PRIMARY] > 1 or states[KeyState.PENDING] > 1:
        raise RecordTampered(f"key {key_id} has more than one primary or pending version")
    if numbers != list(range(1, len(numbers) + 1)):
        raise RecordTampered(f"key {key_id} has versions {numbers}")
