"""`ttmark audit prune`: what is left verifies, and nothing else excuses a missing beginning."""

import asyncio
import json
import multiprocessing
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest

from tests.harness.audit_records import events
from tests.harness.command_line import invoke
from tests.unit.shared.keys.conftest import KEK
from ttmark.services.features.audit.chain import Chain
from ttmark.services.features.audit.record import Head
from ttmark.services.features.audit.segments import segments
from ttmark.services.features.audit.trail import Heads
from ttmark.services.settings.store import open_store
from ttmark.shared.vault.kek import KeyEncryptionKey

DAYS, A_DAY = 20, 6


async def put(head: Head) -> None:
    store = open_store("sqlite:///keys.db")
    await Heads(store, KeyEncryptionKey(KEK)).put(head)
    await store.close()


def write(place: Path, writer: str, *, days_ago: int, days: int = DAYS, a_day: int = A_DAY) -> Head:
    """The chain of a writer that is gone: so many days, the first of them so long ago."""
    time = datetime.now(UTC) - timedelta(days=days_ago)
    chain = Chain(place / "audit", writer, now=lambda: time)
    for _ in range(days):
        for number in range(a_day):
            head = chain.append({"action": "key.generate", "tokens": number})
        time += timedelta(days=1)
    chain.close()
    asyncio.run(put(head))
    return head


@pytest.fixture
def chains(place: Path) -> tuple[str, str]:
    """120 records that are 39 to 20 days old, and as many that are 19 to 0 days old."""
    return write(place, "gen@gone", days_ago=39).chain, write(place, "gen@here", days_ago=19).chain


def actions(place: Path, action: str) -> list[dict[str, Any]]:
    return [event for event in events(place / "audit") if event["action"] == action]


def files(place: Path) -> set[str]:
    return {path.name for path in (place / "audit").iterdir()}


def in_order() -> str:
    result = invoke("audit", "verify", "store")
    assert result.exit_code == 0, result.output
    return result.stdout


def test_what_is_left_verifies(place: Path, chains: tuple[str, str]) -> None:
    gone, here = chains
    before = (datetime.now(UTC) - timedelta(days=9)).date()
    result = invoke("audit", "prune", "--before", before, "--yes", "--json")
    assert result.exit_code == 0
    of_gone, of_here = json.loads(result.stdout)["removed"]
    assert (of_gone["chain"], of_gone["first"], of_gone["through"]) == (gone, 1, 120)
    assert (of_here["chain"], of_here["records"], of_here["segments"]) == (here, 60, 10)
    assert of_here["until"] < f"{before}" <= invoke("audit", "export", "-").stdout.split('"time":"')[1][:10]
    said = in_order()
    assert "64 records in 2 chains are in order\n" in said  # four are of the command
    assert f"{here} is whole from record 61 on" in said
    assert "of 1 chain every record was removed" in said
    assert [event["removed"] for event in actions(place, "audit.remove")] == [of_gone, of_here]
    (run,) = actions(place, "audit.prune")
    assert run["before"] == f"{before}T00:00:00.000000+00:00"
    assert not any(name.startswith("gen@gone") for name in files(place))


def test_nothing_is_removed_where_nobody_agrees(place: Path, chains: tuple[str, str]) -> None:
    there = files(place)
    asked = invoke("audit", "prune", "--keep", "9d")
    assert (asked.exit_code, "Say --yes" in asked.output) == (2, True)
    dry = invoke("audit", "prune", "--keep", "9d", "--dry-run")
    assert (dry.exit_code, "would remove 186 records of 2 chains" in dry.stdout) == (0, True)
    assert files(place) - {"removal.lock"} == there


def test_the_setting_says_how_long_where_nothing_is_asked(place, chains, monkeypatch):
    assert "no whole segment is from before" in invoke("audit", "prune", "--yes").stdout
    monkeypatch.setenv("TTMARK_AUDIT_KEEP_DAYS", "30")
    assert "removed 60 records of 1 chain\n" in invoke("audit", "prune", "--yes").stdout
    monkeypatch.setenv("TTMARK_AUDIT_KEEP_DAYS", "0")
    refused = invoke("audit", "prune", "--yes")
    assert (refused.exit_code, "say --keep or --before" in refused.stderr) == (1, True)


def cut(place: Path, chain: str) -> None:
    """What somebody does who may write the folder, and has no key."""
    segments(place / "audit")[chain][0].path.unlink()


def test_a_beginning_that_is_cut_off_is_found_before_and_after(place: Path, chains: tuple[str, str]) -> None:
    gone, here = chains
    assert invoke("audit", "prune", "--keep", "30d", "--yes").exit_code == 0
    cut(place, gone)
    cut(place, here)
    result = invoke("audit", "verify", "store")
    assert result.exit_code == 1
    assert f"{gone}, record 1: is missing, with all before number 67" in result.stderr
    assert f"{here}, record 1: is missing, with all before number 7" in result.stderr


@pytest.mark.parametrize("harm", ["changed", "cut off"])
def test_a_chain_with_a_problem_stays_as_evidence_and_the_others_are_pruned(place, chains, harm):
    gone, here = chains
    first = segments(place / "audit")[gone][0].path
    if harm == "changed":
        first.write_bytes(first.read_bytes().replace(b'"tokens":3', b'"tokens":5', 1))
    else:
        first.unlink()
    there = files(place)
    result = invoke("audit", "prune", "--keep", "10d", "--yes")
    assert result.exit_code == 1
    assert f"{gone}, record {4 if harm == 'changed' else 1}: " in result.stderr
    assert {name for name in there if name.startswith(gone)} <= files(place)
    assert [event["removed"]["chain"] for event in actions(place, "audit.remove")] == [here]


class Killed(BaseException):
    """As a process that ends between two calls."""


@pytest.mark.parametrize("removed", range(0, 12, 3))
def test_what_a_kill_leaves_verifies_and_the_next_run_finishes_it(place, chains, monkeypatch, removed):
    unlink, gone = Path.unlink, list[Path]()

    def killed(path: Path, missing_ok: bool = False) -> None:
        if len(gone) == removed:
            raise Killed
        gone.append(path)
        unlink(path, missing_ok)

    with monkeypatch.context() as fault:
        fault.setattr(Path, "unlink", killed)
        with pytest.raises(Killed):
            invoke("audit", "prune", "--keep", "25d", "--yes")
    in_order()
    assert "of 1 chain\n" in invoke("audit", "prune", "--keep", "25d", "--yes").stdout
    in_order()
    assert len(segments(place / "audit")[chains[0]]) == 5


def test_a_kill_before_the_store_knows_removes_nothing(place, chains, monkeypatch):
    async def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as fault:
        fault.setattr(Heads, "put_removed", killed)
        with pytest.raises(Killed):
            invoke("audit", "prune", "--keep", "25d", "--yes")
    assert len(segments(place / "audit")[chains[0]]) == DAYS
    in_order()


def append_for_a_while(folder: str, begun: Event, enough: Event) -> None:
    """A service: its days fly by, and its head follows."""
    time = datetime.now(UTC) - timedelta(days=60)
    chain = Chain(Path(folder), "gen@busy", now=lambda: time)
    number = 0
    while not enough.is_set() or number < 200:
        number += 1
        time = min(time + timedelta(hours=5), datetime.now(UTC))
        chain.append({"action": "key.generate", "tokens": number})
        if number % 50 == 0:
            asyncio.run(put(chain.sync()))
            begun.set()
    asyncio.run(put(chain.sync()))
    chain.close()


@pytest.mark.long
def test_a_service_that_writes_meanwhile_loses_nothing(place: Path, chains: tuple[str, str]) -> None:
    fork = multiprocessing.get_context("spawn")
    begun, enough = fork.Event(), fork.Event()
    writer = fork.Process(target=append_for_a_while, args=(str(place / "audit"), begun, enough))
    writer.start()
    try:
        assert begun.wait(60)
        for keep in (50, 40, 30, 20, 10, 5, 1):
            result = invoke("audit", "prune", "--keep", f"{keep}d", "--yes")
            assert result.exit_code == 0, result.output
    finally:
        enough.set()
        writer.join(60)
    assert writer.exitcode == 0
    assert "gen@busy" in in_order()


@pytest.mark.long
def test_two_runs_at_once_do_not_get_into_each_others_way(place: Path, chains: tuple[str, str]) -> None:
    command = [sys.executable, "-m", "ttmark.services", "audit", "prune", "--keep", "9d", "--yes"]
    runs = [subprocess.Popen(command) for _ in range(2)]
    assert [run.wait(60) for run in runs] == [0, 0]
    in_order()
    assert not any(name.startswith("gen@gone") for name in files(place))


def test_the_newest_segment_of_a_running_writer_stays(place: Path, chains: tuple[str, str]) -> None:
    gone, _ = chains
    chain = Chain(place / "audit", "gen@gone")
    result = invoke("audit", "prune", "--keep", "10d", "--yes")
    assert f"{gone}: its newest segment stays, because its writer may be running" in result.stdout
    assert len(segments(place / "audit")[gone]) == 1
    head = chain.append({"action": "goes on"})
    chain.close()
    asyncio.run(put(head))
    assert (head.chain, head.sequence) == (gone, 121)
    assert f"{gone} is whole from record 115 on" in in_order()


def test_a_writer_whose_chain_was_removed_begins_another(place: Path, chains: tuple[str, str]) -> None:
    gone, _ = chains
    invoke("audit", "prune", "--keep", "10d", "--yes")
    assert write(place, "gen@gone", days_ago=0, days=1).chain != gone
    in_order()


def test_exports_and_what_is_left_verify_together(place: Path, chains: tuple[str, str]) -> None:
    _, here = chains
    day = (datetime.now(UTC) - timedelta(days=9)).date()
    assert invoke("audit", "export", "all.jsonl").exit_code == 0
    assert invoke("audit", "export", "old.jsonl", "--until", day).exit_code == 0
    assert invoke("audit", "export", "short.jsonl", "--until", day - timedelta(days=2)).exit_code == 0
    assert invoke("audit", "prune", "--before", day, "--yes").exit_code == 0
    exported = invoke("audit", "export", "left.jsonl")
    assert f"{here} begins with record 61\n" in exported.stderr
    for parts in (("all", "store"), ("old", "store"), ("old", "left", "store"), ("short", "all", "store")):
        names = [f"{part}.jsonl" if part != "store" else part for part in parts]
        result = invoke("audit", "verify", *names, "--key", "case.pem")
        assert (result.exit_code, f"the {len(parts)} parts fit together" in result.stdout) == (0, True)
    result = invoke("audit", "verify", "short.jsonl", "store")
    assert result.exit_code == 1
    assert f"{here}, record 49: is in no part: numbers 49 to 60 are missing" in result.stderr
    result = invoke("audit", "verify", "left.jsonl", "old.jsonl")
    assert (result.exit_code, "older than the one before" in result.stderr) == (1, True)


def test_an_export_of_another_past_does_not_fit(place: Path, chains: tuple[str, str]) -> None:
    """The same chain's names and numbers, written anew without the key: in order by itself."""
    _, here = chains
    parts = segments(place / "audit")[here]
    kept = {part.path: part.path.read_bytes() for part in parts}
    time = datetime.now(UTC)
    chain = Chain(place / "forged", "gen@here", now=lambda: time - timedelta(days=19))
    chain._head = Head(here, 0, "0" * 64)
    for number in range(60):
        chain.append({"action": "forged", "tokens": number})
    chain.close()
    invoke("audit", "prune", "--keep", "10d", "--yes")
    assert kept
    forged = invoke("audit", "export", "forged.jsonl", env={"TTMARK_AUDIT_FOLDER": str(place / "forged")})
    assert forged.exit_code == 0
    assert invoke("audit", "verify", "forged.jsonl").exit_code == 0
    result = invoke("audit", "verify", "forged.jsonl", "store")
    assert (result.exit_code, "does not fit the part before" in result.stderr) == (1, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--keep", "soon"),
        ("--keep", "0d"),
        ("--keep", "-1d"),
        ("--keep", "400"),
        ("--keep", "400d", "--before", "2026-01-01"),
        ("--before", "2999-01-01"),
        ("--before", "yesterday"),
    ],
)
def test_bad_usage_is_exit_code_2(place: Path, arguments: tuple[str, ...]) -> None:
    assert invoke("audit", "prune", "--yes", *arguments).exit_code == 2


def test_without_a_trail_one_line_says_so(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no whole segment" in invoke("audit", "prune", "--yes").stdout
    monkeypatch.delenv("TTMARK_AUDIT_FOLDER")
    result = invoke("audit", "prune", "--yes")
    assert (result.exit_code, "set TTMARK_AUDIT_FOLDER" in result.stderr) == (1, True)
