"""Access tokens: who gets in, who does not, and how soon a revocation counts."""

from datetime import timedelta
from typing import Any

import pytest

from tests.harness.waiting import until
from ttmark.services.settings.store import open_store
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.stores.key_store_errors import (
    ExpiredToken,
    InvalidToken,
    RecordRolledBack,
    StoreUnavailable,
)
from ttmark.shared.vault.stores.store import RecordStore, Stored


class SwitchableStore:
    """A store that counts its reads and can be away."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self.away = False
        self.reads = 0

    async def get(self, kind: str, record_id: str) -> Stored | None:
        self.reads += 1
        if self.away:
            raise StoreUnavailable("away")
        return await self._store.get(kind, record_id)

    async def ping(self) -> None:
        if self.away:
            raise StoreUnavailable("away")

    def turn_to(self, store: RecordStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.fixture
def switchable(store: RecordStore) -> SwitchableStore:
    return SwitchableStore(store)


@pytest.fixture
def registry(switchable: SwitchableStore, kek: KeyEncryptionKey, clock: Any) -> TokenRegistry:
    return TokenRegistry(
        switchable, kek, fresh_seconds=2, outage_seconds=900, now=clock.now, monotonic=clock.monotonic
    )


async def test_a_token_says_who_its_bearer_is(registry: TokenRegistry) -> None:
    """What is not exactly it is refused: of every route by `test_credentials.py`."""
    plain, info = await registry.create(tenant="acme", scopes=[Scope.DETECT])
    expected = Principal(info.token_id, "acme", frozenset({Scope.DETECT}))
    assert await registry.authenticate(plain) == expected


async def test_an_expired_token_is_refused_from_the_moment_it_expires(registry, clock):
    plain, _ = await registry.create(
        tenant="acme", scopes=[Scope.DETECT], expires_at=clock.now() + timedelta(seconds=1)
    )
    await registry.authenticate(plain)
    clock.seconds += 1
    with pytest.raises(ExpiredToken):
        await registry.authenticate(plain)


async def test_a_revocation_here_counts_at_once_and_repeats_harmlessly(registry: TokenRegistry) -> None:
    plain, info = await registry.create(tenant="acme", scopes=[Scope.DETECT])
    await registry.authenticate(plain)
    revoked = await registry.revoke(info.token_id)
    assert revoked.revoked_at is not None
    assert await registry.revoke(info.token_id) == revoked
    with pytest.raises(InvalidToken):
        await registry.authenticate(plain)


async def test_known_tokens_go_on_working_while_the_store_is_away_and_new_ones_do_not(
    registry: TokenRegistry, switchable: SwitchableStore, clock: Any
) -> None:
    known, _ = await registry.create(tenant="acme", scopes=[Scope.DETECT])
    unseen, _ = await registry.create(tenant="acme", scopes=[Scope.DETECT])
    await registry.authenticate(known)
    reads = switchable.reads
    await registry.authenticate(known)
    assert switchable.reads == reads
    switchable.away = True
    clock.seconds += 600
    for _ in range(10):
        await registry.authenticate(known)
    assert switchable.reads == reads + 1
    await registry._outage.look()
    with pytest.raises(StoreUnavailable):
        await registry.authenticate(unseen)
    assert switchable.reads == reads + 1
    clock.seconds += 301
    with pytest.raises(StoreUnavailable):
        await registry.authenticate(known)
    switchable.away = False
    await until(lambda: not registry._outage.away)
    await registry.authenticate(known)
    await registry.authenticate(unseen)


async def test_a_read_that_fails_while_the_store_answers_is_nobody_else_s(
    registry: TokenRegistry, switchable: SwitchableStore, kek: KeyEncryptionKey, clock: Any
) -> None:
    known, info = await registry.create(tenant="acme", scopes=[Scope.DETECT])
    unseen, _ = await registry.create(tenant="acme", scopes=[Scope.DETECT])
    await registry.authenticate(known)
    clock.seconds += 3
    switchable.away = True
    await registry.authenticate(known)
    switchable.away = False
    await registry._outage.look()
    assert await registry.authenticate(unseen)
    await TokenRegistry(switchable, kek).revoke(info.token_id)
    with pytest.raises(InvalidToken):
        await registry.authenticate(known)  # it is read, as after two seconds at any time


async def test_a_store_that_lost_its_records_makes_no_token_invalid(registry, switchable, kek, tmp_path):
    """Who was given an unseen token must hear that the service has a problem, not that the token is wrong."""
    known, _ = await registry.create(tenant="acme", scopes=[Scope.DETECT])
    unseen, _ = await TokenRegistry(switchable, kek).create(tenant="acme", scopes=[Scope.DETECT])
    await registry.authenticate(known)
    empty = open_store(f"sqlite:///{tmp_path / 'empty.db'}")
    switchable.turn_to(empty)
    with pytest.raises(RecordRolledBack):
        await registry.authenticate(unseen)
    with pytest.raises(StoreUnavailable):
        await TokenRegistry(empty, kek).authenticate(unseen)  # a cold start
    await registry.authenticate(known)
    await empty.close()


async def test_tokens_are_listed_without_their_hashes(registry: TokenRegistry, clock: Any) -> None:
    _, first = await registry.create(tenant="acme", scopes=[Scope.DETECT], label="one")
    clock.seconds += 1
    _, second = await registry.create(tenant="other", scopes=[Scope.GENERATE])
    assert await registry.list() == [first, second]
    assert await registry.list(tenant="other") == [second]
    assert "sha256" not in first.model_dump_json()


async def test_a_token_needs_a_scope_a_tenant_and_a_time_zone(registry: TokenRegistry, clock: Any) -> None:
    with pytest.raises(ValueError, match="scope"):
        await registry.create(tenant="acme", scopes=[])
    with pytest.raises(ValueError, match="tenant"):
        await registry.create(tenant="No Tenant", scopes=[Scope.DETECT])
    with pytest.raises(ValueError, match="time zone"):
        await registry.create(tenant="a", scopes=[Scope.DETECT], expires_at=clock.now().replace(tzinfo=None))
    with pytest.raises(InvalidToken, match="there is no token"):
        await registry.revoke("0" * 16)
