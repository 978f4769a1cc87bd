"""The life cycle against a plain model, over both stores, in whatever order hypothesis finds."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.contract.keys.faulty_store import PROFILE, States, after, states_of
from ttmark.services.settings.store import open_store
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.keys.backup import verify_store
from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.stores.key_store_errors import (
    InvalidToken,
    InvalidTransition,
    KeyExists,
    KeyStoreError,
    NoSuchKey,
)

key_ids = st.sampled_from(["a", "b", "c"])
versions = st.integers(1, 5)


class LifeCycle(RuleBasedStateMachine):
    """Keys and tokens in a store, and in dictionaries."""

    fresh_url: Callable[[], str]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.keks = [bytes([number]) * 32 for number in range(3)]
        self.keys: dict[str, States] = {}
        self.prf_keys: dict[tuple[str, int], bytes] = {}
        self.tokens: dict[str, tuple[str, bool]] = {}

    @initialize()
    def open(self) -> None:
        self.url = type(self).fresh_url()
        self.store = open_store(self.url)
        self.reopen(rotate_kek=False)

    def run(self, call: Any) -> Any:
        return self.runner.run(call)

    def expect(self, error: type[KeyStoreError] | None, call: Any) -> Any:
        if error is None:
            return self.run(call)
        with pytest.raises(error):
            self.run(call)
        return None

    @rule(rotate_kek=st.booleans())
    def reopen(self, rotate_kek: bool) -> None:
        """A process that has seen nothing yet; now and then with a new key-encryption key in front."""
        if rotate_kek:
            self.keks = [*self.keks[1:], self.keks[0]]
        kek = KeyEncryptionKey(*self.keks)
        self.ring = KeyRing(self.store, kek)
        self.registry = TokenRegistry(self.store, kek, fresh_seconds=0)

    @rule()
    def rewrap(self) -> None:
        self.run(self.ring.rewrap())
        self.run(self.registry.rewrap())

    @rule(key_id=key_ids)
    def create(self, key_id: str) -> None:
        error = KeyExists if key_id in self.keys else None
        self.expect(error, self.ring.create(key_id, tenant=f"tenant-{key_id}", profile=PROFILE))
        self.keys.setdefault(key_id, ("primary",))

    @rule(key_id=key_ids)
    def rotate(self, key_id: str) -> None:
        self.change("rotate", key_id, 1, self.ring.rotate(key_id))

    @rule(key_id=key_ids, version=versions)
    def promote(self, key_id: str, version: int) -> None:
        self.change("promote", key_id, version, self.ring.promote(key_id, version))

    @rule(key_id=key_ids, version=versions)
    def retire(self, key_id: str, version: int) -> None:
        self.change("retire", key_id, version, self.ring.retire(key_id, version))

    @rule(key_id=key_ids, version=versions)
    def disable(self, key_id: str, version: int) -> None:
        self.change("disable", key_id, version, self.ring.disable(key_id, version))

    def change(self, operation: str, key_id: str, version: int, call: Any) -> None:
        states = self.keys.get(key_id, ())
        if version > len(states):
            self.expect(NoSuchKey, call)
        elif (expected := after(states, operation, version)) is None:
            self.expect(InvalidTransition, call)
        else:
            assert states_of(self.run(call)) == expected
            self.keys[key_id] = expected

    @rule(tenant=st.sampled_from(["x", "y"]))
    def issue(self, tenant: str) -> None:
        plain, _ = self.run(self.registry.create(tenant=tenant, scopes=[Scope.DETECT]))
        self.tokens[plain] = (tenant, True)

    @rule(data=st.data())
    def revoke(self, data: st.DataObject) -> None:
        if self.tokens:
            plain = data.draw(st.sampled_from(sorted(self.tokens)))
            self.run(self.registry.revoke(plain.split("_")[1]))
            self.tokens[plain] = (self.tokens[plain][0], False)

    @rule(data=st.data())
    def authenticate(self, data: st.DataObject) -> None:
        if self.tokens:
            plain = data.draw(st.sampled_from(sorted(self.tokens)))
            tenant, valid = self.tokens[plain]
            principal = self.expect(None if valid else InvalidToken, self.registry.authenticate(plain))
            assert principal is None or principal.tenant == tenant

    @rule()
    def look_through_a_replica(self) -> None:
        cache = KeyCache(KeyRing(self.store, KeyEncryptionKey(*self.keks)))
        self.run(cache.refresh())
        assert cache.ready == bool(self.keys)
        for key_id, states in self.keys.items():
            key = cache.get(key_id)
            assert key is not None
            assert key.tenant == f"tenant-{key_id}"
            assert states_of(key) == states
            assert (key.primary is None) == ("primary" not in states)
            for version in key.versions:
                known = self.prf_keys.setdefault((key_id, version.version), version.prf_key)
                assert version.prf_key == known
        assert len(set(self.prf_keys.values())) == len(self.prf_keys)

    @invariant()
    def at_most_one_primary_and_one_pending(self) -> None:
        for states in self.keys.values():
            assert states.count("primary") <= 1
            assert states.count("pending") <= 1

    def teardown(self) -> None:
        report = self.run(verify_store(self.store, KeyEncryptionKey(*self.keks)))
        assert report.problems == {}
        assert (report.keys, report.tokens) == (len(self.keys), len(self.tokens))
        self.run(self.store.close())
        self.runner.close()


@pytest.mark.parametrize(("examples", "steps"), [(25, 20), pytest.param(2_000, 50, marks=pytest.mark.slow)])
def test_the_life_cycle_agrees_with_its_model(explore, examples, steps):
    explore(LifeCycle, examples, steps)
