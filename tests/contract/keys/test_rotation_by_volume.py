"""Rotation by volume over both stores: two generation replicas count, one command rotates, detectors lead."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.contract.keys.faulty_store import KEK, PROFILE
from ttmark.services.settings.store import open_store
from ttmark.shared.events import Event
from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.keys.replica_reports import ReplicaReporter
from ttmark.shared.keys.rotation_by_volume import VolumeCounter, rotate_due, volume_name
from ttmark.shared.vault.stores.key_store_errors import InvalidTransition, StoreUnavailable
from ttmark.shared.vault.stores.store import RecordStore

LIMIT = 1_000


class Replica:
    """A service's keys over a connection of its own, refreshed by hand."""

    def __init__(self, store: RecordStore, name: str) -> None:
        self.store = store
        reporter = ReplicaReporter(self.store, name, max_age_seconds=3_600)
        self.cache = KeyCache(KeyRing(self.store, KEK), refresh_seconds=3_600, reporter=reporter)
        self.volume = VolumeCounter(self.store, lambda: self.cache.keys)

    def generate(self, tokens: int) -> int | None:
        """Marks tokens with the version that this replica knows as the primary one."""
        key = self.cache.get("k")
        if key is None or key.primary is None:
            return None
        self.volume.count("k", key.primary.version, tokens)
        return key.primary.version

    def detects(self) -> set[int]:
        key = self.cache.get("k")
        return {version.version for version in key.detectable} if key else set()


@pytest.fixture
async def replicas(opened: Any) -> Mapping[str, Replica]:
    """Two replicas of generation and one of detection that know key `k`."""
    made = {name: Replica(opened(open_store), name) for name in ("gen-1", "gen-2", "detect-1")}
    await KeyRing(made["gen-1"].store, KEK).create("k", tenant="t", profile=PROFILE)
    for replica in made.values():
        await replica.cache.refresh()
    return made


async def test_counters_begin_at_zero_and_last(store: RecordStore, opened: Any) -> None:
    assert await store.counts() == {}
    assert await store.add({}) == {}
    assert await store.add({"a/1": 5, "b/2": 0}) == {"a/1": 5, "b/2": 0}
    assert await opened(open_store).add({"a/1": 7}) == {"a/1": 12}
    assert await store.counts() == {"a/1": 12, "b/2": 0}


async def test_what_two_replicas_add_at_once_is_added_up(store: RecordStore, opened: Any) -> None:
    other = opened(open_store)
    await asyncio.gather(*(each.add({"k/1": 3, "k/2": 1}) for each in [store, other] * 50))
    assert await store.counts() == {"k/1": 300, "k/2": 100}


async def test_two_replicas_fill_one_limit_and_each_sees_how_full_it_is(replicas, store):
    first, second = replicas["gen-1"], replicas["gen-2"]
    await KeyRing(store, KEK).rotate_after("k", LIMIT)
    for replica in (first, second):
        await replica.cache.refresh()
        replica.generate(300)
    await first.volume.report()
    assert (first.volume.share, second.volume.share) == (0.3, 0.3)
    await second.volume.report()
    assert second.volume.share == 0.6
    await first.volume.report()  # without text of its own it reads the other's
    assert first.volume.share == 0.6
    assert (first.volume.unreported, second.volume.unreported) == (0, 0)


async def test_a_full_version_is_followed_only_after_every_replica_knows_the_next(replicas, store):
    ring = KeyRing(store, KEK)
    await ring.rotate_after("k", LIMIT)
    replicas["gen-1"].generate(LIMIT - 1)
    await replicas["gen-1"].volume.report()
    assert await rotate_due(ring, await store.counts()) == []
    replicas["gen-2"].generate(1)
    await replicas["gen-2"].volume.report()
    for name in ("gen-1", "gen-2", "detect-1"):
        (rotation,) = await rotate_due(ring, await store.counts())
        assert name in str(rotation.waits_for)
        assert replicas["gen-1"].generate(0) == 1
        await replicas[name].cache.refresh()
    (rotation,) = await rotate_due(ring, await store.counts())
    assert (rotation.version, rotation.marked_tokens, rotation.waits_for) == (2, LIMIT, None)
    assert await rotate_due(ring, await store.counts()) == []
    await replicas["gen-1"].cache.refresh()
    assert replicas["gen-1"].generate(5) == 2
    assert replicas["detect-1"].detects() == {1, 2}


async def test_many_commands_at_once_rotate_once(replicas: Mapping[str, Replica], opened: Any) -> None:
    operators = [opened(open_store) for _ in range(4)]
    await KeyRing(operators[0], KEK).rotate_after("k", LIMIT)
    replicas["gen-1"].generate(LIMIT)
    await replicas["gen-1"].volume.report()
    volumes = await operators[0].counts()
    await asyncio.gather(*(rotate_due(KeyRing(each, KEK), volumes) for each in operators))
    info = await KeyRing(operators[0], KEK).info("k")
    assert [version.state.value for version in info.versions] == ["primary", "pending"]
    for replica in replicas.values():
        await replica.cache.refresh()
    await asyncio.gather(*(rotate_due(KeyRing(each, KEK), volumes) for each in operators))
    info = await KeyRing(operators[0], KEK).info("k")
    assert [version.state.value for version in info.versions] == ["active", "primary"]
    with pytest.raises(InvalidTransition, match="no longer the primary one"):
        await KeyRing(operators[1], KEK).rotate("k", primary=1)  # one that looked before the promotion


async def test_a_replica_that_stops_adds_what_it_has_counted(store: RecordStore) -> None:
    async with VolumeCounter(store, lambda: (), every_seconds=3_600) as volume:
        volume.hear(Event("key.generated", key_id="k", version=3, tokens=40))
        volume.hear(Event("key.generate", key_id="k", version=3, tokens=1_000))  # of a prompt
        volume.hear(Event("key.generated", tokens=7))  # without a watermark
    assert await store.counts() == {volume_name("k", 3): 40}


async def test_a_running_counter_reports_by_itself_and_loses_nothing_while_the_store_is_away(store):
    reported = asyncio.Event()

    class FailsOnce:
        failed = False

        async def add(self, amounts: Mapping[str, int]) -> dict[str, int]:
            if not self.failed:
                self.failed = True
                volume.count("k", 1, 11)
                raise StoreUnavailable("away")
            sums = await store.add(amounts)
            reported.set()
            return sums

    flaky: Any = FailsOnce()
    async with VolumeCounter(flaky, lambda: (), every_seconds=0.001) as volume:
        volume.count("k", 1, 9)
        async with asyncio.timeout(30):
            await reported.wait()
    assert ((await store.counts())["k/1"], volume.unreported) == (20, 0)


class Rotations(RuleBasedStateMachine):
    """Replicas that learn, count, report, stop and start whenever they like, and a command that rotates."""

    fresh_url: Callable[[], str]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()

    @initialize()
    def open(self) -> None:
        self.url = type(self).fresh_url()
        self.store = open_store(self.url)
        self.ring = KeyRing(self.store, KEK)
        self.run(self.ring.create("k", tenant="t", profile=PROFILE))
        self.run(self.ring.rotate_after("k", LIMIT))
        self.running: dict[str, Replica] = {}
        self.marked: dict[int, int] = {}
        for name in ("gen-1", "gen-2", "detect-1", "detect-2"):
            self.start_or_stop(name)

    def run(self, call: Any) -> Any:
        return self.runner.run(call)

    @rule(name=st.sampled_from(["gen-2", "detect-1", "detect-2"]))
    def start_or_stop(self, name: str) -> None:
        replica = self.running.pop(name, None)
        if replica is None:
            self.running[name] = Replica(open_store(self.url), name)
            self.run(self.running[name].cache.refresh())
        else:
            self.run(replica.volume.report())
            self.run(replica.cache.stop())
            self.run(replica.store.close())

    @rule(data=st.data())
    def refresh(self, data: st.DataObject) -> None:
        self.run(self.running[data.draw(st.sampled_from(sorted(self.running)))].cache.refresh())

    @rule(name=st.sampled_from(["gen-1", "gen-2"]), tokens=st.integers(1, LIMIT))
    def generate(self, name: str, tokens: int) -> None:
        if name in self.running:
            version = self.running[name].generate(tokens)
            assert version is not None
            self.marked[version] = self.marked.get(version, 0) + tokens
            self.run(self.running[name].volume.report())

    @rule()
    def upkeep(self) -> None:
        self.run(rotate_due(self.ring, self.run(self.store.counts())))

    @invariant()
    def no_text_is_made_that_a_running_detector_does_not_look_for(self) -> None:
        # By what the store says: a generator may learn of its primary version at any moment.
        primary = self.run(self.ring.info("k")).primary.version
        for name, replica in self.running.items():
            if name.startswith("detect"):
                assert primary in replica.detects(), f"{name} does not know version {primary}"

    @invariant()
    def only_full_versions_were_followed(self) -> None:
        counts = self.run(self.store.counts())
        assert {name: value for name, value in counts.items() if value} == {
            volume_name("k", version): tokens for version, tokens in self.marked.items()
        }
        primary = self.run(self.ring.info("k")).primary.version
        assert all(self.marked[version] >= LIMIT for version in range(1, primary))

    def teardown(self) -> None:
        for replica in self.running.values():
            self.run(replica.store.close())
        self.run(self.store.close())
        self.runner.close()


# That both stores keep what is asked of them is tested without a model, too.
@pytest.mark.parametrize("explore", ["sqlite", pytest.param("redis", marks=pytest.mark.slow)], indirect=True)
def test_no_version_is_promoted_that_a_running_detector_does_not_know(explore: Callable[..., None]) -> None:
    explore(Rotations, 25, 25)
