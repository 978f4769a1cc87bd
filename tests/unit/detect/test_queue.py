"""The queue of a team over HTTP: who sees what, one change on another, a trace of each."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.detect.callers import known
from tests.unit.detect.served import served
from ttmark.detect_service.queue.queue_service import KeptQueue
from ttmark.detect_service.queue.queue_store import SqliteQueue
from ttmark.services.detection_stores import open_queue
from ttmark.services.settings.cases_and_jobs import QueueSettings
from ttmark.shared.vault.audit_events import AuditEvent
from ttmark.shared.vault.kek import KeyEncryptionKey

ENTRY = {
    "name": "letter.txt",
    "document": {"content": "text", "sha256": "ab" * 32},
    "verdict": "watermarked",
    "log10_p": -12.5,
}


@dataclass
class Team:
    """A client, and what the service leaves behind."""

    client: httpx.AsyncClient
    folder: Path
    events: list[AuditEvent]

    async def ask(self, method: str, path: str = "", who: str = "mine", **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {who}"}
        return await self.client.request(method, f"/v1/queue{path}", headers=headers, **options)

    async def add(self, who: str = "mine", **fields: Any) -> dict[str, Any]:
        answer = await self.ask("POST", "", who, json={**ENTRY, **fields})
        assert answer.status_code in (200, 201), answer.text
        return dict(answer.json())

    async def change(
        self, item: dict[str, Any], state: str, who: str = "mine", note: str = ""
    ) -> httpx.Response:
        body = {"id": item["id"], "version": item["version"], "state": state, "note": note}
        return await self.ask("POST", "/changes", who, json=body)


@pytest.fixture
def open_team(service, tmp_path: Path) -> Callable[..., Any]:
    @asynccontextmanager
    async def opened(*, keeps: bool = True, days: float = 2.0, items: int = 5) -> AsyncIterator[Team]:
        events: list[AuditEvent] = []

        store = SqliteQueue(tmp_path / "queue.db")
        queue = KeptQueue(store, KeyEncryptionKey(bytes(32)), bytes(32), days, items)
        options = {"audit": events.append}
        async with served(service.backend, known, options=options, queue=queue if keeps else None) as client:
            yield Team(client, tmp_path, events)
        await store.close()

    return opened


@pytest.fixture
async def team(open_team) -> AsyncIterator[Team]:
    async with open_team() as team:
        yield team


async def test_a_document_goes_through_the_states_with_who_and_why_and_a_trace_of_each(team: Team) -> None:
    item = await team.add(note="from the inbox")
    for who, state, note in (
        ("second", "looked_at", ""),
        ("second", "decided", "ours"),
        ("mine", "appealed", "the author asks"),
    ):
        item = (await team.change(item, state, who, note)).json()
    assert (item["state"], item["version"]) == ("appealed", 4)
    assert [(step["state"], step["token_id"], step["note"]) for step in item["steps"]] == [
        ("new", "t1", "from the inbox"),
        ("looked_at", "t2", ""),
        ("decided", "t2", "ours"),
        ("appealed", "t1", "the author asks"),
    ]
    assert (await team.ask("GET", f"/{item['id']}")).json() == item
    traces = [
        (event.action, event.token_id, event.tenant, event.state, event.item_id) for event in team.events
    ]
    assert traces == [
        ("queue.add", "t1", "a", "new", item["id"]),
        ("queue.change", "t2", "a", "looked_at", item["id"]),
        ("queue.change", "t2", "a", "decided", item["id"]),
        ("queue.change", "t1", "a", "appealed", item["id"]),
    ]


async def test_of_two_at_once_the_second_is_told_what_is_there(team: Team) -> None:
    item = await team.add()
    answers = await asyncio.gather(
        team.change(item, "decided", "mine", "ours"), team.change(item, "looked_at", "second")
    )
    first, second = sorted(answers, key=lambda answer: answer.status_code)
    assert (first.status_code, second.status_code) == (200, 409)
    assert second.headers["content-type"] == "application/problem+json"
    assert second.json()["present"] == first.json()
    assert f"token {first.json()['steps'][-1]['token_id']}" in second.json()["detail"]
    assert (await team.change(second.json()["present"], "appealed", "second")).status_code == 200


async def test_the_same_document_is_one_item_and_the_queue_is_listed_by_state(team: Team) -> None:
    item = await team.add()
    decided = (await team.change(item, "decided")).json()
    assert await team.add("second", name="copy.txt") == decided
    other = await team.add(document={"content": "text", "sha256": "cd" * 32})
    listed = (await team.ask("GET")).json()
    assert listed == {"items": [other, decided], "next_offset": None}
    assert (await team.ask("GET", "?state=new")).json()["items"] == [other]
    assert (await team.ask("GET", "?limit=1")).json() == {"items": [other], "next_offset": 1}


async def test_tenants_are_apart_and_without_evidence_each_sees_its_own(team: Team) -> None:
    item, own = await team.add(), await team.add("verdict", document={"content": "text", "sha256": "ef" * 32})
    assert own["log10_p"] is None
    assert (await team.ask("GET", "", "stranger")).json()["items"] == []
    assert (await team.ask("GET", "", "verdict")).status_code == 403
    assert (await team.add("stranger"))["id"] != item["id"]
    for who, mine, theirs in (
        ("second", 200, 200),
        ("verdict", 404, 200),
        ("verdict2", 404, 404),
        ("stranger", 404, 404),
    ):
        assert (await team.ask("GET", f"/{item['id']}", who)).status_code == mine, who
        assert (await team.ask("GET", f"/{own['id']}", who)).status_code == theirs, who
    assert (await team.change(item, "decided", "stranger")).status_code == 404
    assert (await team.change(item, "decided", "verdict")).status_code == 404
    for who, status in (("second", 403), ("stranger", 404), ("mine", 204), ("mine", 404)):
        assert (await team.ask("DELETE", f"/{item['id']}", who)).status_code == status, who
    assert (await team.ask("GET", "", "writer")).status_code == 403


async def test_items_end_and_a_full_queue_says_so(open_team) -> None:
    async with open_team(days=1e-9) as team:
        item = await team.add()
        assert (await team.ask("GET", f"/{item['id']}")).status_code == 404
        assert (await team.ask("GET")).json()["items"] == []
    async with open_team(items=1) as team:
        answer = await team.ask("POST", json={**ENTRY, "document": {"content": "text", "sha256": "0" * 64}})
        assert (answer.status_code, "may have 1 items" in answer.json()["detail"]) == (429, True)


async def test_the_store_sees_neither_names_nor_hashes(team: Team) -> None:
    await team.add(note="a secret note")
    for file in team.folder.glob("queue.db*"):
        assert not any(
            part in file.read_bytes() for part in (b"letter", b"ab" * 32, b"secret", bytes([0xAB] * 8))
        )


async def test_what_is_no_entry_is_refused(team: Team) -> None:
    for fields, param in (
        ({"text": "a text"}, "text"),
        ({"document": {"content": "text", "sha256": "AB"}}, "document.sha256"),
        ({"log10_p": 1}, "log10_p"),
        ({"name": ""}, "name"),
        ({"note": "x" * 1_001}, "note"),
    ):
        answer = await team.ask("POST", json={**ENTRY, **fields})
        assert (answer.status_code, answer.json()["param"]) == (422, param)
    assert team.events == []


async def test_by_default_there_is_no_queue(open_team) -> None:
    async with open_team(keeps=False) as team:
        for method, path, body in (("POST", "", ENTRY), ("GET", "", None), ("GET", f"/{'0' * 32}", None)):
            answer = await team.ask(method, path, json=body)
            assert (answer.status_code, "TTMARK_QUEUE_KEEP_DAYS" in answer.json()["detail"]) == (404, True)
    assert open_queue(QueueSettings(), None) is None  # type: ignore[arg-type]
