"""What the release before kept, as its code wrote it to either store, is told of, exported and deleted."""

import asyncio
import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs
from typer.testing import CliRunner, Result

from tests.unit.audit.conftest import events
from ttmark.services.cli.main import app
from ttmark.services.kept_before import kept_beside, tell_where
from ttmark.shared.cases.signed_file import CasePublicKey, verified_case

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/kept_before.json").read_text())


def lay_files(folder: Path) -> None:
    for name, statements in GOLDEN["sqlite"]["files"].items():
        with sqlite3.connect(folder / name) as connection:
            connection.executescript("\n".join(statements))


def lay_keys(client: redis.Redis) -> None:
    for name, (kind, value) in GOLDEN["redis"]["keys"].items():
        if kind == "hash":
            client.hset(name, mapping={field: one.encode("latin-1") for field, one in value.items()})
        elif kind == "zset":
            client.zadd(name, value)
        else:
            client.set(name, value)
    client.set("{ttmark}:other", "stays")


@dataclass
class Yesterday:
    """A store with what was kept beside it.

    Attributes:
        cases: the case, by tenant and id, of those whose time is not over.
    """

    url: str
    folder: Path
    cases: dict[tuple[str, str], str]
    items: list[dict[str, Any]]

    def export(self, *options: str) -> Result:
        return CliRunner().invoke(app, ["case", "export-kept", str(self.folder / "out"), *options])

    def left(self) -> tuple[list[str], int]:
        """Where something lies, and how many records."""

        async def look() -> tuple[list[str], int]:
            kept = kept_beside(self.url)
            try:
                return await kept.places(), len(await kept.read())
            finally:
                await kept.close()

        return asyncio.run(look())


@pytest.fixture
def yesterday(store_url: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch) -> Yesterday:
    kind = store_url.partition(":")[0]
    if kind == "sqlite":
        lay_files(tmp_path)
    else:
        with request.getfixturevalue("redis_server").client() as client:
            lay_keys(client)
    (tmp_path / "audit").mkdir()
    for name, value in {
        "STORE_URL": store_url,
        "KEK": GOLDEN["kek"],
        "AUDIT_FOLDER": str(tmp_path / "audit"),
        "LEDGER_FILE": "none",
    }.items():
        monkeypatch.setenv(f"TTMARK_{name}", value)
    cases = {(tenant, one): case for one, (tenant, lasts, case) in GOLDEN[kind]["cases"].items() if lasts}
    return Yesterday(store_url, tmp_path, cases, GOLDEN[kind]["items"])


def test_cases_become_signed_files_the_queue_a_file_and_nothing_of_them_stays(yesterday: Yesterday):
    done = yesterday.export("--yes")
    out = yesterday.folder / "out"
    assert (done.exit_code, done.output) == (0, f"wrote 3 cases and 2 items of a queue to {out}\n")
    files = {(path.parent.name, path.stem): path.read_text() for path in out.glob("*/*.json")}
    assert files == yesterday.cases
    key = CasePublicKey.from_pem(GOLDEN["public_key"])
    for case in files.values():
        assert verified_case(case.encode(), key)["result"]["verdict"] == "watermarked"
    items = {line["id"]: line for line in map(json.loads, (out / "queue.jsonl").read_text().splitlines())}
    assert {one: (item["tenant"], item["entry"]["name"]) for one, item in items.items()} == {
        item["id"]: (tenant, item["name"])
        for tenant, item in zip(("press", "shop"), yesterday.items, strict=True)
    }
    assert all(items[item["id"]]["steps"] == item["steps"] for item in yesterday.items)
    assert yesterday.left() == ([], 0)
    assert not [*yesterday.folder.glob("cases.db*"), *yesterday.folder.glob("queue.db*")]
    traces = [(event["action"], event.get("tenant")) for event in events(yesterday.folder / "audit")]
    assert [trace for trace in traces if trace[0] == "case.export"] == [
        ("case.export", "press"),
        ("case.export", "shop"),
    ]
    assert yesterday.export("--yes").output == "there was nothing\n"


def test_of_redis_every_key_of_it_goes_and_no_other(redis_server, yesterday: Yesterday) -> None:
    if yesterday.url.startswith("redis"):
        assert yesterday.export("--yes").exit_code == 0
        with redis_server.client() as client:
            assert [key for key in client.scan_iter() if b":audit" not in key] == [b"{ttmark}:other"]


def test_it_asks_first_and_a_folder_that_is_there_is_refused(yesterday: Yesterday) -> None:
    before = yesterday.left()
    assert before[1] == 7
    assert yesterday.export().exit_code == 2
    assert not (yesterday.folder / "out").exists()
    (yesterday.folder / "out").mkdir()
    refused = yesterday.export("--yes")
    assert (refused.exit_code, "File exists" in refused.stderr, refused.stderr.count("\n")) == (1, True, 1)
    assert yesterday.left() == before


def test_what_no_key_at_hand_opens_is_deleted_only_if_somebody_says_so(yesterday, monkeypatch):
    monkeypatch.setenv("TTMARK_KEK", "ab" * 32)
    before = yesterday.left()
    refused = yesterday.export("--yes")
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    assert refused.stderr.startswith("ttmark: nothing was deleted: 5 records do not open, the first is ")
    assert yesterday.left() == before
    monkeypatch.setenv("TTMARK_KEK", "ab" * 32 + "\n" + GOLDEN["kek"])
    assert yesterday.export("--yes").output.startswith("wrote 3 cases and 2 items")


def test_what_is_lost_on_purpose_is_deleted(yesterday: Yesterday, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTMARK_KEK", "ab" * 32)
    assert yesterday.export("--yes", "--lose-unreadable").output.startswith("wrote 0 cases and 0 items")
    assert yesterday.left() == ([], 0)


def test_a_start_says_in_one_line_where_it_is(yesterday: Yesterday) -> None:
    with capture_logs() as logs:
        asyncio.run(tell_where(yesterday.url))
    (line,) = logs
    places = (
        ["{ttmark}:case* and {ttmark}:queue* in redis 127.0.0.1:" + yesterday.url.rpartition(":")[2]]
        if yesterday.url.startswith("redis")
        else [str(yesterday.folder / name) for name in ("cases.db", "queue.db")]
    )
    assert (line["where"], line["what_to_do"]) == (places, "ttmark case export-kept FOLDER")


def test_a_start_says_nothing_where_nothing_is_and_makes_no_file(store_url: str, tmp_path: Path) -> None:
    with capture_logs() as logs:
        asyncio.run(tell_where(store_url))
        asyncio.run(tell_where("redis://127.0.0.1:1"))
    assert logs == []
    assert list(tmp_path.iterdir()) == []
