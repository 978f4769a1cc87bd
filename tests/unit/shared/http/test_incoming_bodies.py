"""Who sends a body slowly, or may not send it at all, holds up nobody of its tenant."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
from starlette.types import Message, Receive, Send
from starlette.types import Scope as AsgiScope

from tests.harness.waiting import until
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.request_body import _LONG_BODIES_AT_ONCE, LONG_BODY_BYTES, BodyMiddleware, HttpLimits
from ttmark.shared.http.service_errors import error_renderer

LONG = b"[" + b"1," * LONG_BODY_BYTES + b"1]"
LIMITS = HttpLimits(body_seconds=30.0)


class Sender:
    """A request whose body comes in pieces, each after so many seconds; the last wait may be endless."""

    def __init__(
        self,
        pieces: list[tuple[float, bytes]],
        *,
        scopes: frozenset[Scope] = frozenset(),
        tenant: str = "tenant",
        declared: bool = True,
    ) -> None:
        self.pieces = pieces
        self.status = 0
        length = [(b"content-length", str(len(LONG)).encode())] if declared else []
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": "POST",
            "path": "/v1/detect",
            "headers": [(b"content-type", b"application/json"), *length],
            "state": {"principal": Principal(f"token of {tenant}", tenant, scopes), "request_id": "r"},
        }

    async def receive(self) -> Message:
        if not self.pieces:
            await asyncio.Event().wait()
        seconds, piece = self.pieces.pop(0)
        await asyncio.sleep(seconds)
        return {"type": "http.request", "body": piece, "more_body": piece not in (LONG, b"")}

    async def send(self, message: Message) -> None:
        self.status = message.get("status", self.status)

    async def sent_to(self, middleware: BodyMiddleware) -> float:
        """Seconds until the answer."""
        began = time.monotonic()
        await middleware(self.scope, self.receive, self.send)
        return time.monotonic() - began


async def answer(_: AsgiScope, __: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


def middleware(limits: HttpLimits = LIMITS, **scopes: Scope) -> BodyMiddleware:
    needed = {"/v1/detect": scopes["needs"]} if scopes else {}
    return BodyMiddleware(answer, limits, error_renderer("problem"), scopes=needed)


@pytest.fixture
async def stuck() -> Any:
    """Starts senders, and ends them after the test."""
    tasks: list[asyncio.Task[float]] = []

    def start(senders: list[Sender], to: BodyMiddleware) -> None:
        tasks.extend(asyncio.create_task(sender.sent_to(to)) for sender in senders)

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_24_connections_that_send_one_byte_hold_up_no_long_body(stuck: Any) -> None:
    to = middleware()
    stuck([Sender([(0, b"[")]) for _ in range(24)], to)
    await asyncio.sleep(0.05)
    honest = Sender([(0, LONG)])
    assert await asyncio.wait_for(honest.sent_to(to), 5) < 1
    assert honest.status == 200


async def test_who_stops_after_a_turn_began_loses_it_after_a_second(stuck: Any) -> None:
    to = middleware()
    stalling = [Sender([(0, LONG[: LONG_BODY_BYTES + 1])]) for _ in range(2)]
    stuck(stalling, to)
    await asyncio.sleep(0.05)
    honest = Sender([(0, LONG)])
    assert await asyncio.wait_for(honest.sent_to(to), 5) < 2.5
    assert [sender.status for sender in stalling] == [408, 408]


async def test_a_body_at_the_least_rate_is_taken_and_a_slower_one_is_a_408() -> None:
    to = middleware(replace(LIMITS, least_body_rate=100_000))
    head, rest = LONG[: LONG_BODY_BYTES + 1], LONG[LONG_BODY_BYTES + 1 :]
    steps = [rest[start : start + 4_000] for start in range(0, len(rest), 4_000)]
    fast = Sender([(0, head), *((0.03, step) for step in steps)])
    slow = Sender([(0, head), *((0.3, step) for step in steps)])
    ends = (0, b"")

    async def sent(sender: Sender) -> int:
        sender.pieces.append(ends)
        await sender.sent_to(to)
        return sender.status

    fast_status, slow_status = await asyncio.gather(sent(fast), sent(slow))
    assert (fast_status, slow_status) == (200, 408)


async def test_a_body_whose_sender_lacks_the_scope_is_not_read() -> None:
    to = middleware(needs=Scope.DETECT)
    without = Sender([(0, b"[")])
    assert await asyncio.wait_for(without.sent_to(to), 5) < 1
    assert (without.status, len(without.pieces)) == (403, 1)
    with_scope = Sender([(0, LONG)], scopes=frozenset({Scope.DETECT}))
    await with_scope.sent_to(to)
    assert with_scope.status == 200


class Upload(Sender):
    """A request of a tenant whose body arrives when the test says so."""

    def __init__(self, tenant: str, *, declared: bool = True) -> None:
        super().__init__([], tenant=tenant, declared=declared)
        self.begun, self.asked, self.arrived = False, asyncio.Event(), asyncio.Event()

    async def receive(self) -> Message:
        if not self.begun:  # what a sender without a turn is heard for
            self.begun = True
            return {"type": "http.request", "body": LONG[: LONG_BODY_BYTES + 1], "more_body": True}
        self.asked.set()
        await self.arrived.wait()
        return {"type": "http.request", "body": LONG[LONG_BODY_BYTES + 1 :], "more_body": False}


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_tenant_s_long_bodies_are_read_a_few_at_a_time_and_others_do_not_wait(stuck: Any) -> None:
    to = middleware()
    greedy = [Upload("greedy", declared=index % 2 == 0) for index in range(5)]
    stuck(greedy, to)
    await settled()
    assert sum(upload.asked.is_set() for upload in greedy) == _LONG_BODIES_AT_ONCE
    other = Upload("other")
    other.arrived.set()
    await asyncio.wait_for(other.sent_to(to), 5)
    for upload in greedy:
        upload.arrived.set()
    await until(lambda: all(upload.status == 200 for upload in (*greedy, other)))


async def test_a_sender_who_leaves_gives_its_turn_up() -> None:
    to = middleware()
    leaving = [asyncio.create_task(Upload("a").sent_to(to)) for _ in range(_LONG_BODIES_AT_ONCE)]
    await settled()
    for task in leaving:
        task.cancel()
    await asyncio.gather(*leaving, return_exceptions=True)
    next_one = Upload("a")
    next_one.arrived.set()
    await asyncio.wait_for(next_one.sent_to(to), 5)
