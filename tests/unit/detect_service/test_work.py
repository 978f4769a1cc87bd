"""Work has a price: estimated, bounded, budgeted, interrupted without a change of the answer."""

import asyncio
import threading
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
import numpy as np
import pytest

from tests.unit.detect_service.callers import CALLERS
from tests.unit.detect_service.conftest import Service
from tests.unit.detect_service.served import served
from tests.unit.shared.watermark.conftest import Counting
from ttmark.detect_service.ask import ask_here
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.cost import estimated_tokens, request_cost
from ttmark.detect_service.detectors import LIKELIHOOD
from ttmark.detect_service.documents.backend import DetectionBackend
from ttmark.detect_service.documents.text_reader import text_readers
from ttmark.detect_service.examination import Examination
from ttmark.detect_service.fair_work.fair_queue import WorkLimits
from ttmark.detect_service.key_selection import KeySelection
from ttmark.detect_service.normalization.normalizer import TextNormalizer
from ttmark.detect_service.options import REQUESTS
from ttmark.detect_service.question import Question
from ttmark.detect_service.results import response_json
from ttmark.shared.limits.counters import LocalCounters
from ttmark.shared.limits.rate_limits import WorkBudget
from ttmark.shared.schemas.detection.detect import CombinedRequest, Document
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.detectors.alignment import detect_aligned
from ttmark.shared.watermark.detectors.localized import detect_localized
from ttmark.shared.watermark.interruption import interruptible, pause
from ttmark.shared.watermark.schemes.watermark import Watermark

TOKENS = np.random.default_rng(3).integers(97, 122, 2_500).tolist()


async def test_answers_are_the_same_to_the_byte_when_the_work_is_interrupted(service, asked):
    mode, options = asked
    text = service.marked("a-one", 900)
    documents = [Document(text=text), Document(token_ids=TOKENS), Document(id='"evidence":[]', text="x")]
    request = REQUESTS[mode].model_validate({"inputs": documents, "evidence": "blocks", **options})
    whole = ask_here(Question(request, CALLERS["mine"], "r"), means_of(service.backend))
    counting = Counting()
    with interruptible(counting):
        again = ask_here(Question(request, CALLERS["mine"], "r"), means_of(service.backend))
        in_slices = response_json(again)
    assert in_slices == whole.model_dump_json().encode()
    assert counting.pauses > 10


@pytest.mark.parametrize("chunk", [7, 64])
def test_steps_between_pauses_change_no_score(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    watermark = Watermark("synthid", 2, None, {"depth": 7})  # has no null table

    def all_evidence() -> list[object]:
        return [
            detect_aligned(watermark, bytes(16), TOKENS, beta=3.0),
            detect_localized(watermark, bytes(16), TOKENS[:400]),
            detect_localized(watermark, bytes(16), TOKENS[:400], method="waterseeker"),
        ]

    whole = all_evidence()
    monkeypatch.setattr("ttmark.shared.watermark.interruption.STEPS", chunk)
    monkeypatch.setattr("ttmark.shared.watermark.detectors.alignment.STEPS", chunk)
    assert all_evidence() == whole


def client_of(
    service: Service, *, blocks: int = 0, budget: WorkBudget | None = None, jobs: int = 64
) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    backend = DetectionBackend(service.backend.keys, service.backend.tokenizers, 100_000, blocks)
    work = WorkLimits(workers=1, queued_requests=jobs)
    return served(backend, service.authenticate, headers=service.headers(), work=work, budget=budget)


async def test_a_request_of_too_much_work_says_how_much_the_limit_and_what_to_reduce(service):
    dear = {"inputs": [{"token_ids": TOKENS}], "keys": ["a-one"]}
    async with client_of(service, blocks=20_000) as client:
        refused = await client.post("/v1/detect", json=dear)
        fine = await client.post("/v1/detect", json=dear | {"inputs": [{"token_ids": TOKENS[:1_000]}]})
        metrics = (await client.get("/metrics")).text
    assert refused.status_code == 413
    detail = refused.json()["detail"]
    assert all(words in detail for words in ("the limit is 20000", "fewer", "beta"))
    assert int(detail.split("estimated at ")[1].split()[0]) > 20_000
    assert fine.status_code == 200
    assert 'ttmark_detect_work_refusals_total{reason="cost"} 1.0' in metrics


async def test_all_texts_of_a_document_are_priced_before_one_is_read(service, monkeypatch):
    document, key = Document(text="\u201cone\u201d  two " * 400), service.keys["a-one"]
    request = CombinedRequest(inputs=[document], keys=["a-one"])
    readers = text_readers(document, service.backend.tokenizers, TextNormalizer(), normalize=True)
    assert len(readers) == 3
    two = request_cost(
        request, LIKELIHOOD, readers[:2], KeySelection.of([key]), lambda one, _: estimated_tokens(one, 10_000)
    )
    read: list[object] = []
    monkeypatch.setattr(TextTokenizer, "encode", lambda *given: read.append(given) or [1, 2, 3])
    async with client_of(service, blocks=two) as client:
        refused = await client.post("/v1/detect", json=request.model_dump())
        assert (refused.status_code, read) == (413, [])
        fine = await client.post("/v1/detect", json={**request.model_dump(), "normalize": False})
    assert (fine.status_code, len(read)) == (200, 1)


async def test_a_text_with_more_tokens_than_its_bytes_suggested_is_held_to_the_limit(service):
    body = {"inputs": [{"text": "a" * 3_000}], "keys": ["a-one"]}  # a token for each byte
    async with client_of(service, blocks=30_000) as client:
        refused = await client.post("/v1/detect", json=body)
        metrics = (await client.get("/metrics")).text
    assert (refused.status_code, refused.json()["code"]) == (413, "too_much_work")
    assert 'ttmark_detect_work_refusals_total{reason="cost"} 1.0' in metrics
    async with client_of(service, blocks=50_000) as client:
        assert (await client.post("/v1/detect", json=body)).status_code == 200


async def test_a_tenant_has_a_budget_of_work_for_a_minute(service: Service) -> None:
    clock = [6_000.0]
    budget = WorkBudget("detect", LocalCounters(), per_minute=50_000, now=lambda: clock[0])
    dear = {"inputs": [{"token_ids": TOKENS}], "keys": ["a-one"]}
    async with client_of(service, budget=budget) as client:
        statuses = [(await client.post("/v1/detect", json=dear)).status_code for _ in range(4)]
        last = await client.post("/v1/detect", json=dear)
        clock[0] += 120
        later = await client.post("/v1/detect", json=dear)
    assert (statuses[0], statuses[-1]) == (200, 429)
    assert 1 <= int(last.headers["Retry-After"]) <= 120
    assert "50000 a minute" in last.json()["detail"]
    assert later.status_code == 200


async def test_a_full_line_is_refused_with_a_time_to_come_back(service, monkeypatch):
    begun, done = threading.Event(), threading.Event()

    look = Examination.look

    def slow(examination: Examination) -> None:
        begun.set()
        assert done.wait(30)
        look(examination)

    monkeypatch.setattr(Examination, "look", slow)
    dear = {"inputs": [{"token_ids": TOKENS}], "keys": ["a-one"]}
    async with client_of(service, jobs=1) as client:
        first = asyncio.create_task(client.post("/v1/detect", json=dear))
        assert await asyncio.to_thread(begun.wait, 30)
        second = await client.post("/v1/detect", json=dear)
        assert (await client.get("/healthz")).status_code == 200
        done.set()
        assert (await first).status_code == 200
    assert second.status_code == 429
    assert int(second.headers["Retry-After"]) >= 1


async def test_work_ends_when_its_client_leaves(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    def endless(*_: object) -> Any:
        begun.set()
        while True:
            pause()

    monkeypatch.setattr(Examination, "look", endless)
    async with client_of(service) as client:
        app = client._transport.app  # type: ignore[attr-defined]
    body = b'{"inputs": [{"token_ids": [%s]}]}' % b",".join(b"%d" % i for i in TOKENS)
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    messages.put_nowait({"type": "http.request", "body": body, "more_body": False})
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    token, path = service.headers()["Authorization"].encode(), "/v1/detect"
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    scope["headers"] = [(b"authorization", token), (b"content-type", b"application/json")]
    asking = asyncio.create_task(app(scope, messages.get, send))
    assert await asyncio.to_thread(begun.wait, 30)
    messages.put_nowait({"type": "http.disconnect"})
    await asyncio.wait_for(asking, 30)
    assert sent == []
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://d") as client:
        async with asyncio.timeout(30):
            while "ttmark_detect_queue_jobs 0.0" not in (  # noqa: ASYNC110 - a thread ends in its own time
                text := (await client.get("/metrics")).text
            ):
                await asyncio.sleep(0.01)
    assert "ttmark_detect_jobs_abandoned_total 1.0" in text
