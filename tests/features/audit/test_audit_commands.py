"""`ttmark audit`: exit code 0 fine, 1 tampered with the first bad record named, 2 bad usage."""

import getpass
import json
from pathlib import Path

import pytest

from tests.harness.audit_records import events
from tests.harness.command_line import invoke
from ttmark.services.features.audit.chain import Chain


@pytest.fixture
def folder(place: Path) -> Path:
    """A working directory with three tokens made on record."""
    for _ in range(3):
        assert invoke("tokens", "create").exit_code == 0
    return place


def test_each_command_says_who_did_what(folder: Path) -> None:
    told = events(folder / "audit")
    assert [event["action"] for event in told] == ["audit.start", "token.create"] * 3
    assert {event["actor"] for event in told[1::2]} == {getpass.getuser()}


def test_a_trail_as_it_was_written_is_in_order(folder: Path) -> None:
    result = invoke("audit", "verify", "store")
    assert (result.exit_code, result.output) == (0, "6 records in 1 chain are in order\n")
    assert json.loads(invoke("audit", "verify", "store", "--json").stdout)["problems"] == []


def test_records_of_what_is_gone_are_in_order_and_leave_as_they_were_written(folder: Path) -> None:
    """An earlier release committed to PRF keys, made versions public, and kept cases and a queue."""
    chain = Chain(folder / "audit", "earlier")
    for action in ("key.create", "key.reveal"):
        chain.append({"action": action, "key_id": "k", "version": 1, "commitment": "ab" * 32})
    chain.append({"action": "case.store", "tenant": "t", "case_id": "cd" * 16})
    chain.append({"action": "queue.change", "tenant": "t", "item_id": "cd" * 16, "state": "decided"})
    chain.close()
    assert invoke("audit", "verify", "store").exit_code == 0
    assert invoke("audit", "export", "out.jsonl").exit_code == 0
    assert (folder / "out.jsonl").read_text().count(f'"commitment":"{"ab" * 32}"') == 2
    assert (folder / "out.jsonl").read_text().count(f'_id":"{"cd" * 16}"') == 2
    assert invoke("audit", "verify", "out.jsonl").exit_code == 0


def test_the_first_bad_record_is_named(folder: Path) -> None:
    (segment,) = (folder / "audit").glob("*.jsonl")
    segment.write_text(segment.read_text().replace('"tenant":"local"', '"tenant":"other"'))
    result = invoke("audit", "verify", "store")
    assert result.exit_code == 1
    assert "record 2: was changed" in result.stderr
    assert f"({segment.name}, line 2)" in result.stderr
    assert invoke("audit", "export", folder / "out.jsonl").exit_code == 1
    assert not (folder / "out.jsonl").exists()


def test_an_export_is_verified_anywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert invoke("audit", "export", "out.jsonl").exit_code == 0
    for name in ("TTMARK_STORE_URL", "TTMARK_KEK", "TTMARK_AUDIT_FOLDER", "TTMARK_CASE_KEY_FILE"):
        monkeypatch.delenv(name)
    result = invoke("audit", "verify", "out.jsonl", "--key", "case.pem")
    assert result.exit_code == 0
    assert "6 records in 1 chain are in order, signed with" in result.output
    out = folder / "out.jsonl"
    out.write_bytes(b"".join(out.read_bytes().splitlines(keepends=True)[1:]))
    result = invoke("audit", "verify", "out.jsonl")
    assert (result.exit_code, "the beginning was cut off" in result.stderr) == (1, True)


def test_an_export_is_of_a_range_of_time(folder: Path) -> None:
    for arguments, records in (
        (("--since", "2020-01-01"), 6),
        (("--since", "2999-01-01"), 0),
        (("--until", "2020-01-01T00:00:00"), 0),
    ):
        lines = invoke("audit", "export", "-", *arguments).stdout.splitlines()
        assert len(lines) == records + 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify",),
        ("verify", "nowhere.jsonl"),
        ("verify", "store", "--key", "case.pem"),
        ("verify", "out.jsonl", "--key", "case.key"),
        ("export", "-", "--since", "yesterday"),
        ("export", "case.key"),
    ],
)
def test_bad_usage_is_exit_code_2(folder: Path, arguments: tuple[str, ...]) -> None:
    assert invoke("audit", *arguments).exit_code == 2
