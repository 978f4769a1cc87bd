"""Chains on disk: continued after a crash, one for each writer, rotated, shortened with a checkpoint."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from tests.features.audit.conftest import Calendar
from tests.harness.audit_records import records
from ttmark.services.features.audit.chain import Chain
from ttmark.services.features.audit.chain_check import Verification, verify_folder
from ttmark.services.features.audit.record import NO_RECORD, Anchor, Head
from ttmark.services.features.audit.segments import ChainSegment, remove, segments


def verified(folder: Path, *heads: Head) -> Verification:
    return verify_folder(segments(folder), {head.chain: Anchor(head) for head in heads})


def prune(chain: Chain, keep: timedelta) -> int:
    """As a process does it, but for the head in the store."""
    old = chain.checkpoint(keep)
    chain.sync()
    remove(old)
    return len(old)


def test_a_chain_goes_on_where_its_writer_ended(tmp_path: Path) -> None:
    for text in ("one", "two"):
        chain = Chain(tmp_path, "gen@host:8000")
        head = chain.append({"action": text})
        chain.close()
    first, second = records(tmp_path)
    assert (first["sequence"], first["previous"]) == (1, NO_RECORD)
    assert (second["sequence"], second["previous"]) == (2, first["hash"])
    assert verified(tmp_path, head).problems == []
    assert not [path for path in tmp_path.iterdir() if path.stat().st_mode & 0o077]


def test_writers_of_one_name_have_chains_of_their_own(tmp_path: Path) -> None:
    chains = [Chain(tmp_path, "gen") for _ in range(3)]
    heads = [chain.append({"action": f"a{number}"}) for number, chain in enumerate(chains) for _ in range(2)]
    for chain in chains:
        chain.close()
    result = verified(tmp_path, *heads)
    assert (result.records, len(result.chains), result.problems) == (6, 3, [])


@pytest.mark.parametrize("torn", [b"", b"{"])
def test_a_segment_that_was_begun_on_a_full_disk_hides_no_record_behind_it(tmp_path, calendar, torn):
    chain = Chain(tmp_path, "gen", now=calendar.now)
    chain.append({"action": "one"})
    chain.close()
    ChainSegment.named(tmp_path, chain.head.chain, 2).path.write_bytes(torn)
    chain = Chain(tmp_path, "gen", now=calendar.now)
    assert chain.torn_bytes == len(torn)
    chain.append({"action": "two"})
    head = chain.append({"action": "three"})
    assert chain.holds(head)  # else the trail takes it for another, and begins anew
    chain.close()
    result = verified(tmp_path, head)
    assert (result.records, list(result.chains), result.problems) == (3, [head.chain], [])


@pytest.mark.parametrize("torn", [b"{", b'{"chain":"gen.0', b"\x00\xff" * 70_000])
def test_half_a_record_of_a_crash_is_cut_off_and_the_chain_goes_on(tmp_path: Path, torn: bytes) -> None:
    chain = Chain(tmp_path, "gen")
    head = chain.append({"action": "one"})
    chain.close()
    (part,) = segments(tmp_path)[head.chain]
    with part.path.open("ab") as file:
        file.write(torn)
    assert verified(tmp_path, head).problems == []
    chain = Chain(tmp_path, "gen")
    assert chain.torn_bytes == len(torn)
    head = chain.append({"action": "two"})
    chain.close()
    assert verified(tmp_path, head).problems == []
    assert len(records(tmp_path)) == 2


def test_a_record_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = Chain(tmp_path, "gen")
    chain.append({"action": "one"})
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda file, line: write(file, line[:20]))
        with pytest.raises(OSError, match="No space"):
            chain.append({"action": "lost"})
    head = chain.append({"action": "two"})
    chain.close()
    assert verified(tmp_path, head).problems == []
    assert [one["event"] for one in records(tmp_path)] == [{"action": "one"}, {"action": "two"}]


def test_what_is_found_damaged_is_left_and_another_chain_begins(tmp_path: Path) -> None:
    chain = Chain(tmp_path, "gen")
    chain.append({"action": "one"})
    old = chain.append({"action": "two"})
    chain.close()
    (part,) = segments(tmp_path)[old.chain]
    part.path.write_bytes(part.path.read_bytes().replace(b"two", b"2wo"))
    chain = Chain(tmp_path, "gen")
    new = chain.append({"action": "three"})
    chain.close()
    assert (new.chain != old.chain, new.sequence) == (True, 1)
    (problem,) = verified(tmp_path, old, new).problems
    assert (problem.chain, problem.sequence) == (old.chain, 2)


def test_segments_begin_each_day_and_at_a_size(tmp_path: Path, calendar: Calendar) -> None:
    chain = Chain(tmp_path, "gen", segment_bytes=1_000, now=calendar.now)
    for _ in range(12):
        head = chain.append({"action": "x" * 100})
    calendar.go_on(days=1)
    head = chain.append({"action": "next day"})
    chain.close()
    parts = segments(tmp_path)[head.chain]
    assert [part.first for part in parts] == [1, 4, 7, 10, 13]
    assert verified(tmp_path, head).problems == []


def test_a_clock_that_is_put_back_does_not_put_the_times_out_of_order(tmp_path, calendar):
    chain = Chain(tmp_path, "gen", now=calendar.now)
    chain.append({"action": "one"})
    calendar.go_on(hours=-20)
    chain.append({"action": "two"})
    chain.close()
    first, second = records(tmp_path)
    assert first["time"] == second["time"]


@pytest.fixture
def old_chain(tmp_path: Path, calendar: Calendar) -> Chain:
    """Ten days of three records each."""
    chain = Chain(tmp_path, "gen", now=calendar.now)
    for _ in range(10):
        for _ in range(3):
            chain.append({"action": "x"})
        calendar.go_on(days=1)
    return chain


def test_old_segments_leave_a_checkpoint(old_chain: Chain, tmp_path: Path) -> None:
    assert prune(old_chain, timedelta(days=5)) == 5
    assert prune(old_chain, timedelta(days=5)) == 0
    head = old_chain.sync()
    assert verified(tmp_path, head).problems == []
    assert records(tmp_path)[0]["sequence"] == 16
    *_, checkpoint = records(tmp_path)
    removed = {"through": 15, "hash": records(tmp_path)[0]["previous"], "segments": 5}
    assert checkpoint["event"] == {"action": "audit.checkpoint", **removed}
    old_chain.append({"action": "goes on"})
    old_chain.close()
    assert verified(tmp_path, head).problems == []


def test_more_than_the_checkpoint_says_is_a_problem(old_chain: Chain, tmp_path: Path) -> None:
    prune(old_chain, timedelta(days=5))
    head = old_chain.sync()
    parts = segments(tmp_path)[head.chain]
    parts[0].path.unlink()
    (problem,) = verified(tmp_path, head).problems
    assert (problem.sequence, "before number 19" in problem.what) == (1, True)


def test_a_removal_that_is_interrupted_can_be_checked_and_is_finished_later(old_chain, tmp_path, monkeypatch):
    unlink, gone = Path.unlink, list[Path]()

    def interrupted(path: Path, missing_ok: bool = False) -> None:
        if len(gone) == 2:
            raise OSError(5, "interrupted")
        gone.append(path)
        unlink(path, missing_ok)

    with monkeypatch.context() as fault:
        fault.setattr(Path, "unlink", interrupted)
        with pytest.raises(OSError, match="interrupted"):
            prune(old_chain, timedelta(days=5))
    assert verified(tmp_path, old_chain.sync()).problems == []
    assert prune(old_chain, timedelta(days=5)) == 3
    assert verified(tmp_path, old_chain.sync()).problems == []


def test_a_checkpoint_that_the_store_does_not_know_of_excuses_nothing(old_chain, tmp_path):
    """Who may write the folder can append a record, and not move the head."""
    head = old_chain.sync()
    first, second, *_ = segments(tmp_path)[head.chain]
    removed = second.first_record()
    old_chain.append({"action": "audit.checkpoint", "through": 3, "hash": removed.previous, "segments": 1})
    old_chain.close()
    first.path.unlink()
    (problem,) = verified(tmp_path, head).problems
    assert "before number 4" in problem.what


def test_a_day_without_a_later_record_goes_when_it_is_old(tmp_path: Path, calendar: Calendar) -> None:
    """Of a writer that is silent for long, what is old does not stay until its next record is old too."""
    chain = Chain(tmp_path, "gen", now=calendar.now)
    chain.append({"action": "old"})
    calendar.go_on(days=100)
    chain.append({"action": "new"})
    assert prune(chain, timedelta(days=50)) == 1
    chain.close()
