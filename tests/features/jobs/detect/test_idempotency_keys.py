"""The header `Idempotency-Key` of the route that makes jobs, over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tests.features.jobs.detect.test_jobs import Desk, open_desk  # noqa: F401 - a fixture
from ttmark.shared.access.scopes import Principal

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


@pytest.fixture
def allowance() -> Allowance:
    return Allowance()


@pytest.fixture
async def desk(open_desk: Any, allowance: Allowance) -> AsyncIterator[Desk]:  # noqa: F811
    async with open_desk(allowance=allowance) as desk:
        yield desk


async def post(desk: Desk, body: Any, key: str | None = "k", who: str = "mine") -> httpx.Response:
    headers = {"Authorization": f"Bearer {who}"} | ({} if key is None else {"Idempotency-Key": key})
    return await desk.client.post(PATH, json=body, headers=headers)


async def test_a_request_that_comes_again_gets_the_first_answer_and_others_are_new(
    desk: Desk, allowance: Allowance
):
    answers = [await post(desk, JOB) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.content for answer in answers}) == 1
    assert len({answer.headers["Location"] for answer in answers}) == 1
    assert len(desk.events) == 1
    assert allowance.documents == 2
    keys = [None, None, "K", '"k"', "k" * 255, "!~"]
    ids = [answers[0].json()["id"], *[(await post(desk, JOB, key)).json()["id"] for key in keys]]
    for who in ("second", "verdict", "stranger"):  # whom the key of another token or tenant tells nothing
        own = [await post(desk, OTHER, who=who) for _ in range(2)]
        assert own[0].status_code == 202
        assert own[0].content == own[1].content
        ids.append(own[0].json()["id"])
    assert len(set(ids)) == len(ids)


async def test_another_body_under_the_same_key_is_refused(desk: Desk) -> None:
    await post(desk, JOB)
    refused = await post(desk, OTHER)
    assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")
    assert refused.json()["code"] == "idempotency_key_reused"
    assert refused.json()["param"] == "Idempotency-Key"
    assert (await post(desk, OTHER, "k2")).status_code == 202


async def test_a_body_that_only_looks_otherwise_is_the_same(desk: Desk) -> None:
    first = await post(desk, JOB)
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


async def test_while_the_first_is_answered_the_others_are_told_to_wait(desk: Desk, allowance: Allowance):
    allowance.waiting = asyncio.Event()
    first = asyncio.create_task(post(desk, JOB))
    await allowance.asked.wait()
    assert (await post(desk, {**JOB, "fpr": 1e-2})).status_code == 422
    waiting = await post(desk, JOB)
    assert (waiting.status_code, waiting.json()["code"]) == (409, "request_in_progress")
    assert "param" not in waiting.json()
    assert 1 <= int(waiting.headers["Retry-After"]) <= 10
    allowance.waiting.set()
    assert (await first).content == (await post(desk, JOB)).content


async def test_a_key_outlives_what_was_made(desk: Desk) -> None:
    first = await post(desk, JOB)
    headers = {"Authorization": "Bearer mine"}
    assert (await desk.client.delete(first.headers["Location"], headers=headers)).status_code == 204
    gone = await post(desk, JOB)
    assert (gone.status_code, gone.json()["code"]) == (409, "already_gone")
    assert "Retry-After" not in gone.headers
    assert (await post(desk, OTHER)).status_code == 422
    assert [event.action for event in desk.events] == ["job.create", "job.delete"]
