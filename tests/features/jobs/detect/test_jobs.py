"""Detection jobs over HTTP, worked on here and now: answered as routes answer, seen by whom they concern."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from tests.unit.detect_service.callers import CALLERS, once
from tests.unit.detect_service.served import served
from tests.unit.detect_service.test_document_limits import FAR, OVER
from ttmark.detect_service.api.metrics import DetectionMetrics
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.documents.backend import DetectionBackend
from ttmark.detect_service.fair_work.fair_queue import FairQueue
from ttmark.detect_service.features.jobs.background import JobWorker
from ttmark.detect_service.features.jobs.job_service import JobMetrics
from ttmark.detect_service.features.jobs.job_store import StoreLimits
from ttmark.detect_service.features.jobs.part_work import MOST_ATTEMPTS, PartWork
from ttmark.detect_service.features.jobs.sealed_jobs import JobLimits, Jobs
from ttmark.detect_service.features.jobs.sqlite_jobs import SqliteJobs
from ttmark.detect_service.normalization.normalizer import NormalizedText, TextNormalizer
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.events import Event
from ttmark.shared.schemas.detection.detect import ReadingName
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.stores.key_store_errors import InvalidToken

SECRET_TEXT = "nobody but the service reads this sentence"


@dataclass
class Desk:
    """A client, a worker that works when it is told to, and what they leave behind."""

    client: httpx.AsyncClient
    worker: JobWorker
    store: SqliteJobs
    database: Path
    events: list[Event]
    callers: dict[str, Principal]
    registry: CollectorRegistry
    worked: CollectorRegistry

    async def ask(self, method: str, path: str, who: str = "mine", **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {who}"}
        return await self.client.request(method, f"/v1/detect/jobs{path}", headers=headers, **options)

    async def make(self, texts: list[str], who: str = "mine", **options: Any) -> str:
        body = {"mode": "direct", "inputs": [{"text": text} for text in texts], **options}
        response = await self.ask("POST", "", who, json=body)
        assert response.status_code == 202, response.text
        assert response.headers["Location"] == f"/v1/detect/jobs/{response.json()['id']}"
        return str(response.json()["id"])

    async def work_once(self) -> bool:
        return await once(self.worker.claimed, self.worker.hold)

    async def work(self) -> int:
        parts = 0
        while await self.work_once():
            parts += 1
        return parts

    async def results(self, job: str, who: str = "mine", **params: Any) -> dict[str, Any]:
        response = await self.ask("GET", f"/{job}/results", who, params=params)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer


Open = Callable[..., Any]


@pytest.fixture
def open_desk(service, tmp_path: Path) -> Open:
    @asynccontextmanager
    async def opened(
        backend: DetectionBackend | None = None, allowance: Any = None, **limits: Any
    ) -> AsyncIterator[Desk]:
        backend = backend or service.backend
        callers, events = dict(CALLERS), list[Event]()

        async def authenticate(plain: str) -> Principal:
            return callers[plain]

        async def current(token_id: str) -> Principal:
            for caller in callers.values():
                if caller.token_id == token_id:
                    return caller
            raise InvalidToken("revoked")

        registry = CollectorRegistry()
        store = SqliteJobs(tmp_path / "jobs.db", lease_seconds=30)
        job_limits = replace(JobLimits(part_documents=4), **limits)
        jobs = Jobs(store, KeyEncryptionKey(bytes(32)), current, job_limits)
        options = {"registry": registry, "audit": events.append}
        other = CollectorRegistry()
        queue = FairQueue(workers=1, most_jobs=9, started=lambda _: None, abandoned=lambda: None)
        metrics = JobMetrics(other)
        parts = PartWork(jobs, means_of(backend), queue, metrics, DetectionMetrics(other), events.append)
        worker = JobWorker(jobs, parts, metrics, ready=lambda: True)
        given = {"options": options, "jobs": jobs, "allowance": allowance}
        async with served(backend, authenticate, **given) as client:
            yield Desk(client, worker, store, tmp_path / "jobs.db", events, callers, registry, other)
        await store.close()

    return opened


@pytest.fixture
async def desk(open_desk: Open) -> AsyncIterator[Desk]:
    async with open_desk() as desk:
        yield desk


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "direct"},
        {"mode": "direct", "phase": 0, "fpr": 1e-3, "keys": ["a-two"]},
        {"mode": "aligned", "beta": 5.0},
        {"mode": "localized", "method": "waterseeker", "normalize": False},
    ],
)
async def test_a_job_answers_what_the_route_answers(service, desk: Desk, options: dict[str, Any]) -> None:
    texts = [service.marked("a-one"), "human words " * 20, service.marked("a-two")[1:], "short"] * 3
    documents: list[dict[str, Any]] = [{"text": text} for text in texts]
    documents[1]["id"] = "named"
    documents[5] = {"token_ids": service.tokenizer.encode(texts[0])}
    body = {**options, "inputs": documents}
    job = (await desk.ask("POST", "", json=body)).json()["id"]
    assert await desk.work() == 3
    rest = {name: value for name, value in body.items() if name != "mode"}
    expected = await service.results(options.get("mode", "combined"), rest)
    answered = await desk.results(job)
    assert [row["index"] for row in answered["results"]] == list(range(12))
    assert [row["id"] for row in answered["results"]] == [result.id for result in expected]
    assert [row["result"] for row in answered["results"]] == [
        result.model_dump(mode="json", exclude_none=True) for result in expected
    ]
    assert (answered["next_offset"], answered["status"]) == (None, "finished")


async def test_the_status_says_how_far_a_job_is(desk: Desk) -> None:
    job = await desk.make(["text"] * 10)
    for name, answered in (("queued", 0), ("running", 4), ("running", 8), ("finished", 10)):
        status = (await desk.ask("GET", f"/{job}")).json()
        assert (status["status"], status["answered"], status["documents"]) == (name, answered, 10)
        assert (status["failed"], status["finished_at"] is not None) == (0, name == "finished")
        await desk.work_once()


async def test_pages_give_each_document_once_while_the_job_goes_on(desk: Desk) -> None:
    job = await desk.make([f"text {number}" for number in range(11)])
    seen: list[int] = []
    offset: int | None = 0
    while offset is not None:
        page = await desk.results(job, offset=offset, limit=3)
        seen += [row["index"] for row in page["results"]]
        offset = page["next_offset"]
        if not page["results"]:
            assert await desk.work_once()
    assert seen == list(range(11))
    assert (await desk.results(job, offset=50))["results"] == []


async def test_lines_name_the_next_page(desk: Desk) -> None:
    job = await desk.make(["text"] * 5)
    await desk.work()
    first = await desk.ask("GET", f"/{job}/results", params={"format": "jsonl", "limit": 3})
    assert first.headers["Content-Type"] == "application/jsonl"
    address = first.headers["Link"].split(">")[0].removeprefix("<")
    second = await desk.client.get(address, headers={"Authorization": "Bearer mine"})
    assert "Link" not in second.headers
    lines = [json.loads(line) for line in (first.text + second.text).splitlines()]
    assert [line["index"] for line in lines] == list(range(5))


async def test_a_document_that_fails_inside_has_an_error_and_is_counted(service, desk, monkeypatch):
    readings = TextNormalizer.readings

    def failing(normalizer: TextNormalizer, text: str) -> dict[ReadingName, NormalizedText]:
        if text == SECRET_TEXT:
            raise ValueError(text)
        return readings(normalizer, text)

    marked = service.marked("a-one")
    job = await desk.make([marked, SECRET_TEXT, "a" * 6_000, SECRET_TEXT, marked])
    monkeypatch.setattr(TextNormalizer, "readings", failing)
    await desk.work()
    rows = (await desk.results(job))["results"]
    codes = [row.get("error", {}).get("code") for row in rows]
    assert codes == [None, "internal_error", "request_too_large", "internal_error", None]
    assert [row["result"]["verdict"] for row in (rows[0], rows[4])] == ["watermarked"] * 2
    assert rows[1].get("result") is None
    assert (await desk.ask("GET", f"/{job}")).json()["failed"] == 3
    counted = {"mode": "direct", "verdict": "not_examined"}
    assert desk.worked.get_sample_value("ttmark_detect_documents_total", counted) == 2
    asked = [event.said for event in desk.events if event.said.get("route") == "/v1/detect/jobs"]
    verdicts = [said["verdicts"] for said in asked if said.get("verdicts")]
    assert verdicts == [{"watermarked": 1, "not_examined": 3}, {"watermarked": 1}]


async def test_only_the_tenant_sees_a_job_and_without_evidence_only_its_maker(service, desk: Desk) -> None:
    job = await desk.make([service.marked("a-one")])
    plain = await desk.make([service.marked("a-one")], "verdict")
    await desk.work()
    for who, sees in (("mine", True), ("second", True), ("verdict", False), ("stranger", False)):
        for method, path in (("GET", ""), ("GET", "/results")):
            assert (await desk.ask(method, f"/{job}{path}", who)).status_code == (200 if sees else 404)
    for who in ("verdict2", "stranger"):
        assert (await desk.ask("DELETE", f"/{plain}", who)).status_code == 404
    assert (await desk.ask("GET", f"/{job}", "writer")).status_code == 403
    assert (await desk.results(job))["results"][0]["result"]["p_value"] < 1e-5
    (row,) = (await desk.results(plain, "verdict"))["results"]
    assert row["result"]["verdict"] == "watermarked"
    assert not {"p_value", "key", "z"} & row["result"].keys()


async def test_rights_are_those_of_the_time_when_the_work_is_done(desk: Desk) -> None:
    revoked, narrowed = await desk.make(["a text"], "verdict"), await desk.make(["a text"], fpr=0.03)
    del desk.callers["verdict"]
    desk.callers["mine"] = Principal("t1", "a", frozenset({Scope.DETECT}))
    await desk.work()
    (row,) = (await desk.results(revoked, "second"))["results"]
    assert row["error"]["code"] == "invalid_api_key"
    (row,) = (await desk.results(narrowed, "second"))["results"]
    assert row["error"]["code"] == "invalid_field"


async def test_texts_are_sealed_in_the_store_and_forgotten_once_answered(desk: Desk) -> None:
    job = await desk.make([SECRET_TEXT] * 3, webhook=None)

    def on_disk() -> bytes:
        return b"".join(path.read_bytes() for path in desk.database.parent.glob("jobs.db*"))

    def count(connection: Any) -> int:
        found: int = connection.execute("SELECT COUNT(documents) FROM parts").fetchone()[0]
        return found

    assert await desk.store._file.run(count) == 1
    assert SECRET_TEXT.encode() not in on_disk()
    await desk.work()
    assert await desk.store._file.run(count) == 0
    assert len((await desk.results(job))["results"]) == 3
    assert (await desk.ask("DELETE", f"/{job}")).status_code == 204
    assert (await desk.ask("GET", f"/{job}")).status_code == 404
    told = [(event.action, event.said["job_id"]) for event in desk.events if "job_id" in event.said]
    assert told == [("job.create", job), ("job.delete", job)]
    (used,) = [event for event in desk.events if event.action == "key.detect"]
    assert (used.said["request_id"], used.said["route"]) == (job, "/v1/detect/jobs")
    assert used.said["verdicts"] == {"too_short": 3}


async def test_what_cannot_become_a_job_is_refused(open_desk: Open) -> None:
    direct: dict[str, Any] = {"mode": "direct", "inputs": [{"text": "a"}]}
    ids = [{"token_ids": [999]}]
    async with open_desk(documents=20, body_bytes=8_000) as desk:
        for body, status, param in (
            ({**direct, "beta": 5.0}, 422, None),
            ({**direct, "mode": "odd"}, 422, "mode"),
            ({"inputs": direct["inputs"], "phase": 0}, 422, None),
            ({**direct, "evidence": "blocks"}, 422, "evidence"),
            ({**direct, "keys": ["no-key"]}, 404, "keys[0]"),
            ({**direct, "webhook": "https://example.org"}, 422, "webhook"),
            ({**direct, "inputs": []}, 422, "inputs"),
            ({**direct, "inputs": [{"text": "a"}] * 21}, 413, "inputs"),
            ({**direct, "inputs": [{"text": "a" * 9_000}]}, 413, None),
            ({**direct, "keys": ["a-one"], "inputs": ids}, 422, "inputs[0].token_ids"),
        ):
            response = await desk.ask("POST", "", json=body)
            assert (response.status_code, response.json().get("param")) == (status, param), response.text
        assert await desk.store.waiting() == 0


async def test_a_job_may_have_more_documents_than_other_bodies_have_objects(open_desk: Open) -> None:
    async with open_desk(documents=12_000, part_documents=4_000) as desk:
        job = await desk.make(["a"] * 12_000)
        assert (await desk.ask("GET", f"/{job}")).json()["documents"] == 12_000


async def test_jobs_of_a_tenant_and_their_room_are_limited(open_desk: Open) -> None:
    async with open_desk(store=StoreLimits(jobs=2, tenant_size=4_000, size=10_000)) as desk:

        async def refused(text: str) -> tuple[int, str | None, str]:
            response = await desk.ask("POST", "", json={"mode": "direct", "inputs": [{"text": text}]})
            return response.status_code, response.headers.get("Retry-After"), response.json()["detail"]

        jobs = [await desk.make(["a"]) for _ in range(2)]
        status, wait, words = await refused("a")
        assert (status, wait, "2 jobs" in words) == (429, "60", True)
        await desk.ask("DELETE", f"/{jobs[0]}")
        status, wait, words = await refused("a" * 2_000)
        assert (status, wait, "4000 bytes" in words) == (429, "60", True)
        status, wait, words = await refused("a" * 4_000)
        assert (status, wait, "Divide it." in words) == (413, None, True)
        assert desk.registry.get_sample_value("ttmark_jobs_total", {"event": "refused"}) == 3
        assert desk.registry.get_sample_value("ttmark_jobs_total", {"event": "no_room"}) == 0


async def test_four_jobs_of_one_tenant_leave_room_for_those_of_another(open_desk: Open) -> None:
    limits = StoreLimits(jobs=16, tenant_size=32_000, size=64_000)
    async with open_desk(store=limits) as desk:
        for _ in range(4):
            body = {"mode": "direct", "inputs": [{"text": " " * 14_000}]}
            last = await desk.ask("POST", "", json=body)
        assert last.status_code == 429
        assert await desk.make(["a"] * 10, "stranger")


async def test_a_store_that_is_full_is_told_without_a_word_about_other_tenants(open_desk: Open) -> None:
    async with open_desk(store=StoreLimits(jobs=16, tenant_size=32_000, size=32_000)) as desk:
        await desk.make(["a" * 14_000])
        body = {"mode": "direct", "inputs": [{"text": "a" * 14_000}]}
        full = await desk.ask("POST", "", "stranger", json=body)
        assert (full.status_code, full.headers["Retry-After"]) == (429, "60")
        assert full.json()["detail"] == "There is no room for this job at the moment."
        assert desk.registry.get_sample_value("ttmark_jobs_total", {"event": "no_room"}) == 1


async def test_a_part_whose_workers_keep_dying_is_answered_with_errors(desk: Desk) -> None:
    job = await desk.make(["a"] * 6)
    desk.store.lease_seconds = 0.0
    for _ in range(MOST_ATTEMPTS):
        claim = await desk.store.claim("dies")
        assert claim.part == 0
    desk.store.lease_seconds = 30.0
    await desk.work()
    rows = (await desk.results(job))["results"]
    assert [row.get("error", {}).get("code") for row in rows] == ["internal_error"] * 4 + [None] * 2


async def test_a_worker_that_is_stopped_gives_its_part_back(desk, monkeypatch):
    begun = asyncio.Event()

    async def never(*_: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    job = await desk.make(["a"])
    with monkeypatch.context() as patch:
        patch.setattr(PartWork, "do", never)
        working = asyncio.create_task(desk.worker.run())
        await asyncio.wait_for(begun.wait(), 30)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    assert await desk.work() == 1
    assert (await desk.ask("GET", f"/{job}")).json()["status"] == "finished"


async def test_a_deleted_job_ends_while_it_is_worked_on(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def never(*_: Any) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    job = await desk.make(["a"])
    monkeypatch.setattr(PartWork, "do", never)
    monkeypatch.setattr(desk.store, "lease_seconds", 0.3)
    working: Awaitable[bool] = asyncio.create_task(desk.work_once())
    await asyncio.wait_for(begun.wait(), 30)
    await desk.ask("DELETE", f"/{job}")
    assert await asyncio.wait_for(working, 30)
    assert ended.is_set()


async def test_a_path_names_the_methods_of_all_its_routes(desk: Desk) -> None:
    for path, allowed in (("", "POST"), (f"/{'0' * 32}", "DELETE, GET"), (f"/{'0' * 32}/results", "GET")):
        response = await desk.ask("OPTIONS", path)
        assert (response.status_code, response.headers["Allow"]) == (405, allowed)


async def test_the_description_says_all_of_it(desk: Desk, check_description: Callable[[Any], None]) -> None:
    description = (await desk.client.get("/openapi.json")).json()
    check_description(description)
    assert {"/v1/detect/jobs", "/v1/detect/jobs/{job_id}"} <= description["paths"].keys()


async def test_documents_over_a_limit_fail_alone_and_the_long_ones_are_not_kept(service, desk):
    marked = service.marked("a-one")
    long = FAR + "".join(map(chr, range(97, 123))) * 40_000
    job = await desk.make([marked, long, OVER, marked])
    files = desk.database.parent.glob(f"{desk.database.name}*")
    assert sum(file.stat().st_size for file in files if not file.name.endswith("shm")) < len(long)
    await desk.work()
    rows = (await desk.results(job))["results"]
    codes = [row.get("error", {}).get("code") for row in rows]
    assert codes == [None, "request_too_large", "request_too_large", None]
    assert [row["result"]["verdict"] for row in (rows[0], rows[3])] == ["watermarked"] * 2
