"""The trail of a process: events become records, the store learns their head, nothing secret is written."""

import asyncio
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.harness.audit_records import events
from ttmark.services.features.audit.chain import Chain
from ttmark.services.features.audit.chain_check import Verification, verify_folder
from ttmark.services.features.audit.record import Head
from ttmark.services.features.audit.segments import segments
from ttmark.services.features.audit.trail import AuditTrail, Heads
from ttmark.services.settings.store import open_store
from ttmark.shared.events import Event
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.stores.key_store_errors import StoreUnavailable

EVENT = Event("key.generate", key_id="main", token_id="0123456789abcdef", request_id="req-1", tokens=9)
OpenTrail = Callable[[], AuditTrail]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "audit"


@pytest.fixture
def open_trail(folder: Path, heads: Heads) -> OpenTrail:
    return lambda: AuditTrail(Chain(folder, "gen@host:8000"), heads, keep=timedelta(days=9))


def cut(folder: Path, records: int) -> Path:
    """Takes the newest records out of the only segment."""
    (segment,) = folder.glob("*.jsonl")
    segment.write_bytes(b"".join(segment.read_bytes().splitlines(keepends=True)[:-records]))
    return segment


async def verified(folder: Path, heads: Heads) -> Verification:
    known, problems = await heads.read_all()
    assert problems == {}
    return verify_folder(segments(folder), known)


async def test_a_process_says_who_it_is_and_leaves_a_head(open_trail, folder, heads):
    async with open_trail() as trail:
        trail.hear(EVENT)
    start, event = events(folder)
    assert (start["action"], start["pid"]) == ("audit.start", os.getpid())
    assert event == {
        "action": "key.generate",
        "key_id": "main",
        "token_id": "0123456789abcdef",
        "request_id": "req-1",
        "tokens": 9,
    }
    result = await verified(folder, heads)
    assert (result.records, result.unanchored, result.problems) == (2, [], [])


async def test_a_chain_that_was_cut_while_nobody_wrote_is_left_as_it_is(open_trail, folder, heads):
    async with open_trail() as trail:
        for _ in range(5):
            trail.hear(EVENT)
    segment = cut(folder, 2)
    async with open_trail() as trail:
        for _ in range(9):  # more than were cut off
            trail.hear(EVENT)
        await trail.anchor()
        trail.hear(EVENT)
    assert [event["action"] for event in events(folder)].count("audit.broken") == 1
    (problem,) = (await verified(folder, heads)).problems
    assert problem.chain == segment.name[:-19]
    assert problem.sequence == 6  # of another hash than the store knows


async def test_files_that_are_removed_are_missed_after_a_restart(open_trail, folder, heads):
    async with open_trail() as trail:
        trail.hear(EVENT)
    shutil.rmtree(folder)
    async with open_trail() as trail:
        trail.hear(EVENT)
    (problem,) = (await verified(folder, heads)).problems
    assert (problem.sequence, "up to number 2" in problem.what) == (1, True)


async def test_a_full_disk_loses_events_but_not_their_number(open_trail, folder, heads, monkeypatch):
    async with open_trail() as trail:
        trail.hear(EVENT)
        with monkeypatch.context() as full:
            full.setattr(os, "write", lambda *_: 0)
            trail.hear(EVENT)
            trail.hear(EVENT)
        trail.hear(EVENT)
        with monkeypatch.context() as full:
            full.setattr(os, "write", lambda *_: 0)
            trail.hear(EVENT)  # and no event after it
    assert trail.lost == 3
    said = [(event["action"], event.get("events")) for event in events(folder)]
    assert (said[2], said[-1]) == (("audit.lost", 2), ("audit.lost", 1))
    assert (await verified(folder, heads)).problems == []


def test_threads_that_write_at_once_begin_once_and_count_what_is_lost(folder, heads, monkeypatch):
    """Each write lets the other threads go on, as one to a slow disk does; every other one fails."""
    trail = AuditTrail(Chain(folder, "gen"), heads, keep=None)
    write, calls = os.write, count()

    def slow(file: int, line: bytes) -> int:
        time.sleep(0.001)
        return 0 if next(calls) % 2 else write(file, line)

    with monkeypatch.context() as disk:
        disk.setattr(os, "write", slow)
        with ThreadPoolExecutor(8) as threads:
            for _ in range(80):
                threads.submit(trail.hear, EVENT)
    trail.hear(EVENT)
    trail.close()
    actions = Counter(event["action"] for event in events(folder))
    assert actions["audit.start"] == 1
    assert actions["key.generate"] + trail.lost == 81
    lost = [event["events"] for event in events(folder) if event["action"] == "audit.lost"]
    assert sum(map(int, lost)) == trail.lost > 0  # type: ignore[call-overload]


async def test_without_the_store_the_trail_goes_on(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "keys.db").mkdir()
    store = open_store(f"sqlite:///{tmp_path / 'keys.db'}")
    async with AuditTrail(
        Chain(folder, "gen"), Heads(store, KeyEncryptionKey(bytes(32))), keep=None, every_seconds=0.01
    ) as trail:
        trail.hear(EVENT)
        await asyncio.sleep(0.05)
        assert trail.unanchored == 2
    await store.close()
    assert len(events(folder)) == 2


async def test_nothing_old_goes_before_the_store_knows(folder, heads, calendar, monkeypatch):
    """A crash in between must not look like a beginning that was cut off."""
    chain = Chain(folder, "gen", now=calendar.now)
    for _ in range(9):
        chain.append({"action": "x"})
        calendar.go_on(days=1)

    known = chain.sync()
    put = heads.put

    async def away_later(head: Head) -> None:
        if head != known:
            raise StoreUnavailable("the key store is away")
        await put(head)

    async def fewer_within(seconds: float) -> bool:
        trail = AuditTrail(chain, heads, keep=timedelta(days=4), every_seconds=0.01)
        until = time.monotonic() + seconds
        async with trail:
            while len(segments(folder)[chain.head.chain]) >= 9 and time.monotonic() < until:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return len(segments(folder)[chain.head.chain]) < 9

    with monkeypatch.context() as fault:
        fault.setattr(heads, "put", away_later)
        assert not await fewer_within(0.1)
    chain = Chain(folder, "gen", now=calendar.now)
    assert await fewer_within(10)
    assert (await verified(folder, heads)).problems == []


def test_what_looks_like_a_secret_is_not_written(open_trail: OpenTrail, folder: Path) -> None:
    secret, plain = "c0ffee" * 10 + "c0ff", "ttm_0123456789abcdef_" + "ab" * 32
    trail = open_trail()
    for value in (secret, plain, f"redis://gen:{secret}@redis:6379", f"Bearer {plain}"):
        trail.hear(Event("token.refuse", reason=value, key_id=value, tenant=value, route=value))
    trail.close()
    written = "".join(path.read_text() for path in folder.glob("*.jsonl"))
    assert secret not in written
    assert "ab" * 32 not in written


def test_an_event_costs_one_write_and_does_not_wait_for_the_disk(open_trail, monkeypatch):
    trail, calls = open_trail(), Counter[str]()
    trail.hear(EVENT)

    def note(name: str, call: Callable[..., Any]) -> None:
        def counted(*arguments: Any) -> Any:
            calls[name] += 1
            return call(*arguments)

        monkeypatch.setattr(os, name, counted)

    note("write", os.write)
    note("fsync", os.fsync)
    for _ in range(1000):
        trail.hear(EVENT)
    assert calls == {"write": 1000}
    trail.close()
    assert calls["fsync"] >= 1
