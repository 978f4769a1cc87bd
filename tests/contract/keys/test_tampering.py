"""Whatever somebody with write access to the store does to a record, the record is refused."""

import base64
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
import pytest

from tests.contract.keys.faulty_store import KEK, PROFILE
from ttmark.services.settings.store import open_store
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.vault.stores.key_store_errors import KeyStoreError
from ttmark.shared.vault.stores.store import RecordStore, Stored

Mutation = Callable[[random.Random, list[tuple[str, str, bytes]], bytes], bytes | None]


class TamperedStore:
    """The store as an intruder shows it: one record is replaced."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self.replaced: tuple[str, str] | None = None
        self.payload: bytes | None = None

    async def get(self, kind: str, record_id: str) -> Stored | None:
        stored = await self._store.get(kind, record_id)
        if (kind, record_id) != self.replaced or stored is None:
            return stored
        return None if self.payload is None else Stored(stored.revision, self.payload)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def flip(generator: random.Random, _: list[tuple[str, str, bytes]], payload: bytes) -> bytes:
    position = generator.randrange(8 * len(payload))
    changed = bytearray(payload)
    changed[position // 8] ^= 1 << position % 8
    return bytes(changed)


def truncate(generator: random.Random, _: list[tuple[str, str, bytes]], payload: bytes) -> bytes:
    return payload[: generator.randrange(len(payload))]


def extend(generator: random.Random, _: list[tuple[str, str, bytes]], payload: bytes) -> bytes:
    return payload + generator.randbytes(generator.randrange(1, 20))


def move(generator: random.Random, others: list[tuple[str, str, bytes]], payload: bytes) -> bytes:
    return generator.choice([other for _, _, other in others if other != payload])


def remove(*_: object) -> None:
    return None


def change_field(generator: random.Random, _: list[tuple[str, str, bytes]], payload: bytes) -> bytes:
    document = orjson.loads(payload)
    field = generator.choice(["epoch", "trail", "kek", "data_key", "mac", "format"])
    value = document[field]
    if isinstance(value, int):
        document[field] = value + generator.choice([-1, 1, 1000])
    elif isinstance(value, list):
        document[field] = [*value, "00" * 32]
    elif field == "data_key":
        wrapped = bytearray(base64.b64decode(value))
        wrapped[generator.randrange(len(wrapped))] ^= 1
        document[field] = base64.b64encode(wrapped).decode()
    else:
        document[field] = value[:-1] + ("0" if value[-1] != "0" else "1")
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def change_body(generator: random.Random, others: list[tuple[str, str, bytes]], payload: bytes) -> bytes:
    document = orjson.loads(payload)
    body = document["body"]
    if "versions" in body:
        version = generator.choice(body["versions"])
        donor = generator.choice(
            [
                other["sealed_secret"]
                for kind, _, text in others
                if kind == "key"
                for other in orjson.loads(text)["body"]["versions"]
                if other["sealed_secret"] != version["sealed_secret"]
            ]
        )
        change = generator.choice(
            [
                {"state": "active" if version["state"] != "active" else "primary"},
                {"version": version["version"] + 1},
                {"epoch": version["epoch"] + 1},
                {"sealed_secret": donor},
            ]
        )
        version |= change
        if generator.random() < 0.3:
            body["tenant"] = "evil"
    else:
        body |= generator.choice(
            [{"tenant": "evil"}, {"scopes": sorted(Scope)}, {"secret_sha256": "00" * 32}, {"label": "x"}]
        )
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


MUTATIONS: list[Mutation] = [flip, truncate, extend, move, remove, change_field, change_body]


@pytest.fixture
async def plain_store(tmp_path: Any) -> AsyncIterator[RecordStore]:
    store = open_store(f"sqlite:///{tmp_path / 'keys.db'}")
    yield store
    await store.close()


async def tamper(store: RecordStore, count: int) -> tuple[int, list[str]]:
    """Shows `count` tampered records to those who use them; how many were refused, and which were not."""
    generator = random.Random(11)
    tampered = TamperedStore(store)
    ring, registry = KeyRing(tampered, KEK), TokenRegistry(tampered, KEK, fresh_seconds=0)
    plains: dict[str, str] = {}
    earlier: dict[tuple[str, str], list[bytes]] = {}
    for number in range(4):
        await ring.create(f"k{number}", tenant="t", profile=PROFILE)
        plain, info = await registry.create(tenant="t", scopes=[Scope.DETECT])
        plains[info.token_id] = plain
    for _ in range(3):
        for key_id in [f"k{number}" for number in range(4)]:
            before = await store.get("key", key_id)
            assert before is not None
            earlier.setdefault(("key", key_id), []).append(before.payload)
            await ring.promote(key_id, (await ring.rotate(key_id)).versions[-1].version)
    records = [
        (kind, name, stored.payload) for kind in ("key", "token") for name, stored in await store.scan(kind)
    ]
    refused, accepted = 0, []
    for _ in range(count):
        kind, name, payload = generator.choice(records)
        mutation = generator.choice([*MUTATIONS, "replay"])
        if isinstance(mutation, str):
            choices = earlier.get((kind, name))
            changed = generator.choice(choices) if choices else flip(generator, records, payload)
        else:
            changed = mutation(generator, records, payload)
        tampered.replaced, tampered.payload = (kind, name), changed
        try:
            await (ring.open(name) if kind == "key" else registry.authenticate(plains[name]))
        except KeyStoreError:
            refused += 1
        else:
            accepted.append(f"{kind} {name}: {mutation}")
    tampered.replaced = None
    for number in range(4):
        await ring.open(f"k{number}")
    return refused, accepted


@pytest.mark.parametrize(
    "count", [100, pytest.param(1_000, marks=pytest.mark.long), pytest.param(10_000, marks=pytest.mark.slow)]
)
async def test_every_tampered_record_is_refused(plain_store, count):
    refused, accepted = await tamper(plain_store, count)
    assert accepted == []
    assert refused == count
