"""The header `Idempotency-Key` of the route that makes jobs, over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.detect.callers import known
from tests.unit.detect.served import served
from ttmark.detect_service.jobs.job_store import StoreLimits
from ttmark.detect_service.jobs.sealed_jobs import JobLimits, Jobs
from ttmark.detect_service.jobs.sqlite_jobs import SqliteJobs
from ttmark.shared.access.scopes import Principal
from ttmark.shared.vault.audit_events import AuditEvent
from ttmark.shared.vault.kek import KeyEncryptionKey

JOB = {"mode": "direct", "inputs": [{"text": "one"}, {"text": "two"}]}
OTHER = {**JOB, "fpr": 1e-3}
PATH = "/v1/detect/jobs"


@dataclass
class Allowance:
    """Counts documents, and waits where it is told to."""

    documents: int = 0
    waiting: asyncio.Event | None = None
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    ledger: None = None

    async def take(self, _: Principal, documents: int) -> None:
        self.asked.set()
        if self.waiting is not None:
            await self.waiting.wait()
        self.documents += documents


@dataclass
class Desk:
    """A client of the service, and what the service leaves behind."""

    client: httpx.AsyncClient
    allowance: Allowance
    events: list[AuditEvent] = field(default_factory=list)

    async def post(self, body: Any, key: str | None = "k", who: str = "mine") -> httpx.Response:
        headers = [("Authorization", f"Bearer {who}")] + ([] if key is None else [("Idempotency-Key", key)])
        return await self.client.post(PATH, json=body, headers=headers)


@pytest.fixture
async def desk(service: Any, tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(service, tmp_path) as desk:
        yield desk


@asynccontextmanager
async def open_desk(service: Any, folder: Path, jobs_of_tenant: int = 16) -> AsyncIterator[Desk]:
    kek, allowance, events = KeyEncryptionKey(bytes(32)), Allowance(), list[AuditEvent]()
    jobs = SqliteJobs(folder / "jobs.db", lease_seconds=30)
    limits = JobLimits(store=StoreLimits(jobs_of_tenant, 2**20, 2**21), workers=0)
    async with served(
        service.backend,
        known,
        options={"audit": events.append},
        allowance=allowance,
        jobs=Jobs(jobs, kek, known, limits),
    ) as client:
        yield Desk(client, allowance, events)
    await jobs.close()


async def test_a_request_that_comes_again_gets_the_first_answer_and_any_other_is_new(desk: Desk):
    answers = [await desk.post(JOB) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.content for answer in answers}) == 1
    assert len({answer.headers["Location"] for answer in answers}) == 1
    assert len(desk.events) == 1
    assert desk.allowance.documents == 2
    keys = [None, None, "K", '"k"', "k" * 255, "!~"]
    ids = [answers[0].json()["id"], *[(await desk.post(JOB, key)).json()["id"] for key in keys]]
    for who in ("second", "verdict", "stranger"):  # whom the key of another token or tenant tells nothing
        own = [await desk.post(OTHER, who=who) for _ in range(2)]
        assert own[0].status_code == 202
        assert own[0].content == own[1].content
        ids.append(own[0].json()["id"])
    assert len(set(ids)) == len(ids)


async def test_another_body_under_the_same_key_is_refused(desk: Desk) -> None:
    await desk.post(JOB)
    refused = await desk.post(OTHER)
    assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")
    assert refused.json()["code"] == "idempotency_key_reused"
    assert refused.json()["param"] == "Idempotency-Key"
    assert (await desk.post(OTHER, "k2")).status_code == 202


async def test_a_body_that_only_looks_otherwise_is_the_same(desk: Desk) -> None:
    first = await desk.post(JOB)
    written = json.dumps({"inputs": JOB["inputs"], "normalize": True, **JOB}, indent=2)
    headers = {"Authorization": "Bearer mine", "Idempotency-Key": "k", "Content-Type": "application/json"}
    again = await desk.client.post(PATH, content=written, headers=headers)
    assert again.content == first.content


async def test_an_odd_key_and_two_keys_are_refused_by_the_header_s_name(desk: Desk) -> None:
    odd = ([""], [" "], ["a b"], ["k" * 256], ["ü"], ["\t"], ["k,\x7f"], ["a", "b"])
    for keys in odd:
        sent = [(b"idempotency-key", key.encode("latin-1")) for key in keys]
        headers = [(b"authorization", b"Bearer mine"), *sent]
        refused = await desk.client.post(PATH, json=JOB, headers=headers)
        assert (refused.status_code, refused.json()["param"]) == (400, "Idempotency-Key"), keys
        assert refused.json()["detail"].startswith("Idempotency-Key: send one key of 1 to 255")
    assert desk.events == []


async def test_while_the_first_is_answered_the_others_are_told_to_wait(desk: Desk) -> None:
    desk.allowance.waiting = asyncio.Event()
    first = asyncio.create_task(desk.post(JOB))
    await desk.allowance.asked.wait()
    assert (await desk.post({**JOB, "fpr": 1e-2})).status_code == 422
    waiting = await desk.post(JOB)
    assert (waiting.status_code, waiting.json()["code"]) == (409, "request_in_progress")
    assert "param" not in waiting.json()
    assert 1 <= int(waiting.headers["Retry-After"]) <= 10
    desk.allowance.waiting.set()
    assert (await first).content == (await desk.post(JOB)).content


async def test_a_job_that_finds_no_room_is_charged_once(service: Any, tmp_path: Path) -> None:
    async with open_desk(service, tmp_path, jobs_of_tenant=1) as desk:
        before = (await desk.post(JOB, None)).json()["id"]
        for _ in range(3):
            assert (await desk.post(JOB)).status_code == 429
        assert desk.allowance.documents == 4
        await desk.client.delete(f"/v1/detect/jobs/{before}", headers={"Authorization": "Bearer mine"})
        assert (await desk.post(JOB)).status_code == 202
        assert desk.allowance.documents == 4


async def test_a_key_outlives_what_was_made(desk: Desk) -> None:
    first = await desk.post(JOB)
    headers = {"Authorization": "Bearer mine"}
    assert (await desk.client.delete(first.headers["Location"], headers=headers)).status_code == 204
    gone = await desk.post(JOB)
    assert (gone.status_code, gone.json()["code"]) == (409, "already_gone")
    assert "Retry-After" not in gone.headers
    assert (await desk.post(OTHER)).status_code == 422
    assert [event.action for event in desk.events] == ["job.create", "job.delete"]


async def test_texts_of_every_sort_have_a_fingerprint(desk: Desk) -> None:
    headers = {"Authorization": "Bearer mine", "Content-Type": "application/json"}
    contents = [
        b'{"inputs":[{"text":"\\ud800"}]}',
        b'{"inputs":[{"text":"\\u0000\\udbff\\udfff"}],"fpr":1e-100}',
        b'{"inputs":[{"token_ids":[]}]}',
        b'{"inputs":[{"token_ids":[99999999999999999999999999]}]}',
        b'{"inputs":[{"text":""}],"beta":NaN}',
        json.dumps({"inputs": [{"text": "a" * 70_000}]}).encode(),
    ]
    for number, content in enumerate(contents):
        both = [
            await desk.client.post(PATH, content=content, headers={**headers, **key})
            for key in ({}, {"Idempotency-Key": str(number)}, {"Idempotency-Key": str(number)})
        ]
        assert len({answer.status_code for answer in both}) == 1, content
        assert both[0].status_code < 500


async def test_the_description_names_the_header_and_its_answers(desk: Desk) -> None:
    paths = (await desk.client.get("/openapi.json")).json()["paths"]
    (header,) = [one for one in paths[PATH]["post"]["parameters"] if one["in"] == "header"]
    assert (header["name"], header["required"]) == ("Idempotency-Key", False)
    assert "409" in paths[PATH]["post"]["responses"]
    assert [name for name, ways in paths.items() if "parameters" in ways.get("post", {})] == [PATH]
