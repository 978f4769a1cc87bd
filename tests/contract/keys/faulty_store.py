"""Keys changed and read while Redis fails, and who notes what they may have become.

One writer per key keeps the states that it can be in; another one later is an acknowledged change that was
lost.
"""

import asyncio
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.contract.keys.conftest import FaultProxy
from ttmark.shared.keys.held_keys import UnlockedKey
from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.key_records import KeyInfo, KeyRecord
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.stores.key_store_errors import (
    InvalidTransition,
    KeyExists,
    RecordRolledBack,
    StoreUnavailable,
)
from ttmark.shared.vault.stores.redis_client import RedisClient
from ttmark.shared.vault.stores.redis_connections import RedisAddress
from ttmark.shared.vault.stores.redis_store import RedisStore

States = tuple[str, ...]
KEK = KeyEncryptionKey(bytes(32))
PROFILE = Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": "ab" * 32})
WRITERS = 6
MOST_VERSIONS = 10


def states_of(key: KeyInfo | KeyRecord | UnlockedKey) -> States:
    return tuple(version.state.value for version in key.versions)


def after(states: States, operation: str, version: int) -> States | None:
    """The oracle: states after the operation, or None where it is not allowed."""
    if operation == "rotate":
        return None if "pending" in states else (*states, "pending")
    state = states[version - 1]
    if operation == "promote":
        if state not in ("pending", "primary"):
            return None
        demoted = ["active" if old == "primary" and state == "pending" else old for old in states]
        return (*demoted[: version - 1], "primary", *demoted[version:])
    target = {"retire": "retired", "disable": "disabled"}[operation]
    if operation == "retire" and state not in ("pending", "active", "retired"):
        return None
    return (*states[: version - 1], target, *states[version:])


@dataclass
class History:
    """What one writer knows of its key: the last state seen, and what it may have become since.

    A change without an answer may take effect until a later epoch was seen.
    """

    key_id: str
    epoch: int
    states: States
    unanswered: list[tuple[str, int]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def possible(self) -> set[States]:
        found = {self.states}
        for operation, version in self.unanswered:
            found |= {new for old in found if (new := self._after(old, operation, version)) is not None}
        return found

    def seen(self, info: KeyInfo, last: tuple[str, int] | None = None) -> None:
        """Checks what the store says, right after the operation `last` if that was acknowledged."""
        states, allowed = states_of(info), self.possible()
        if last is not None:
            allowed = {new for old in allowed if (new := self._after(old, *last)) is not None}
        latest = self.epoch + len(self.unanswered) + (last is not None)
        if info.epoch < self.epoch or info.epoch > latest or states not in allowed:
            self.violations.append(
                f"{self.key_id} after {last}: epoch {info.epoch} {states};"
                f" before: epoch {self.epoch} {self.states}, unanswered {self.unanswered}"
            )
        if info.epoch > self.epoch:
            self.unanswered = []
        self.epoch, self.states = info.epoch, states

    @staticmethod
    def _after(states: States, operation: str, version: int) -> States | None:
        return after(states, operation, version) if version <= len(states) else None


class Workload:
    """Writers, one per key, and replicas' caches, all through the proxy."""

    def __init__(self, url: str, seed: int) -> None:
        self.stores = [
            RedisStore(
                RedisClient(
                    RedisAddress.parse(url), connect_seconds=0.5, reply_seconds=0.5, budget_seconds=1.0
                )
            )
            for _ in range(3)
        ]
        self.ring = KeyRing(self.stores[0], KEK)
        self.caches = [KeyCache(KeyRing(store, KEK), refresh_seconds=0.05) for store in self.stores[1:]]
        self.random = random.Random(seed)
        self.histories: dict[str, History] = {}
        self.current: dict[int, History] = {}
        self.served: dict[tuple[str, str, int], set[bytes]] = {}
        self.counts = {"acknowledged": 0, "refused": 0, "unanswered": 0, "noticed": 0}
        self.last_success = time.monotonic()

    async def start(self) -> None:
        for writer in range(WRITERS):
            await self._next_key(writer)
        for cache in self.caches:
            await cache.start()

    async def stop(self) -> None:
        for cache in self.caches:
            await cache.stop()
        for store in self.stores:
            await store.close()

    async def run(self, operations: int) -> None:
        """Every writer makes its share of `operations` that get an answer."""
        reader = asyncio.create_task(self._read_forever())
        await asyncio.gather(*(self._write(writer, operations // WRITERS) for writer in range(WRITERS)))
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)

    async def change_every_key(self) -> None:
        for history in self.histories.values():
            if "pending" not in history.states:
                await self._apply(history, "rotate", 1)
            await self._apply(history, "promote", history.states.index("pending") + 1)

    async def _next_key(self, writer: int) -> None:
        key_id = f"k{writer}-{len(self.histories)}"
        while True:
            try:
                info = await self.ring.create(key_id, tenant=f"tenant-of-{key_id}", profile=PROFILE)
            except StoreUnavailable:
                continue
            except KeyExists:  # by the attempt before, which got no answer
                info = await self._read(key_id)
            self.histories[key_id] = self.current[writer] = History(key_id, info.epoch, states_of(info))
            return

    async def _read(self, key_id: str) -> KeyInfo:
        while True:
            with suppress(StoreUnavailable):
                return await self.ring.info(key_id)

    async def _write(self, writer: int, operations: int) -> None:
        answered = 0
        while answered < operations:
            history = self.current[writer]
            newest = len(history.states)
            operation = self.random.choice(["rotate", "promote", "promote", "retire", "disable"])
            version = 1 if operation == "rotate" else self.random.randint(max(1, newest - 2), newest)
            answered += await self._apply(history, operation, version)
            if newest >= MOST_VERSIONS:
                await self._next_key(writer)

    async def _apply(self, history: History, operation: str, version: int) -> int:
        arguments = () if operation == "rotate" else (version,)
        try:
            info = await getattr(self.ring, operation)(history.key_id, *arguments)
        except StoreUnavailable:
            history.unanswered.append((operation, version))
            self.counts["unanswered"] += 1
            return 0
        except InvalidTransition:
            if all(after(states, operation, version) for states in history.possible()):
                history.violations.append(f"{history.key_id}: {operation} {version} was refused")
            self.counts["refused"] += 1
        except RecordRolledBack:
            self.counts["noticed"] += 1
            await asyncio.sleep(0.02)
        else:
            history.seen(info, (operation, version))
            self.counts["acknowledged"] += 1
        self.last_success = time.monotonic()
        return 1

    async def _read_forever(self) -> None:
        while True:
            self.collect_served()
            await asyncio.sleep(0.02)

    def collect_served(self) -> None:
        for cache in self.caches:
            for history in self.current.values():
                if (key := cache.get(history.key_id)) is not None:
                    for version in key.versions:
                        name = (history.key_id, key.tenant, version.version)
                        self.served.setdefault(name, set()).add(version.prf_key)

    def wrong_keys(self) -> list[str]:
        """Versions that were served with two PRF keys, another tenant, or another version's PRF key."""
        wrong = [str(name) for name, keys in self.served.items() if len(keys) != 1]
        wrong += [str(name) for name in self.served if name[1] != f"tenant-of-{name[0]}"]
        all_keys = [key for keys in self.served.values() for key in keys]
        return wrong + ["shared"] * (len(all_keys) - len(set(all_keys)))

    async def succeeded_after(self, moment: float) -> None:
        while True:
            if self.last_success > moment:
                return
            await asyncio.sleep(0.005)

    async def check_final_states(self) -> None:
        for key_id, history in self.histories.items():
            history.seen(await self.ring.info(key_id))

    @property
    def violations(self) -> list[str]:
        return [violation for history in self.histories.values() for violation in history.violations]


# For how long, and what the proxy does meanwhile.
FAULTS: dict[str, tuple[float, dict[str, Any]]] = {
    "killed": (0.1, {}),
    "paused": (1.2, {}),
    "partitioned": (1.2, {"swallows": True}),
    "refusing": (0.3, {"refuses": True}),
    "slow": (0.5, {"delay_seconds": 0.05}),
    "answering too late": (1.0, {"delay_seconds": 0.6}),
    "sliced": (0.3, {"slice_bytes": 3}),
    "resetting": (0.5, {"reset_probability": 0.2}),
}


async def break_things(
    server: Any, proxy: FaultProxy, workload: Workload, recoveries: dict[str, float]
) -> None:
    """One fault after the other, for ever; how long at most it took until a change succeeded again."""
    begin = {"killed": server.kill, "paused": server.pause, "refusing": proxy.cut}
    end = {"killed": server.start, "paused": server.resume, "partitioned": proxy.cut}
    while True:
        for fault, (seconds, misbehaviour) in FAULTS.items():
            await asyncio.sleep(0.2)
            vars(proxy).update(misbehaviour)
            begin.get(fault, lambda: None)()
            await asyncio.sleep(seconds)
            end.get(fault, lambda: None)()
            proxy.heal()
            healed_at = time.monotonic()
            await workload.succeeded_after(healed_at)
            recoveries[fault] = max(workload.last_success - healed_at, recoveries.get(fault, 0.0))


async def faulty_history(server: Any, operations: int, seed: int) -> tuple[Workload, dict[str, float]]:
    recoveries: dict[str, float] = {}
    async with FaultProxy(server.port, seed) as proxy:
        workload = Workload(proxy.url, seed)
        await workload.start()
        nemesis = asyncio.create_task(break_things(server, proxy, workload, recoveries))
        work = asyncio.create_task(workload.run(operations))
        try:
            await asyncio.wait([work, nemesis], return_when=asyncio.FIRST_COMPLETED)
            while len(recoveries) < len(FAULTS) and not nemesis.done():
                await workload.run(WRITERS * 5)
        finally:
            for task in (nemesis, work):
                task.cancel()
            results = await asyncio.gather(nemesis, work, return_exceptions=True)
            server.resume()
            proxy.heal()
        for result in results:
            if isinstance(result, Exception):
                raise result
        await workload.check_final_states()
        await workload.stop()
    return workload, recoveries
