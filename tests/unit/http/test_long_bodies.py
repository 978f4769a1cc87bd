"""Long bodies of one tenant come in a few at a time, whatever it sends; others do not wait for them."""

import asyncio
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.request_body import (
    _LONG_BODIES_AT_ONCE,
    LONG_BODY_BYTES,
    HttpLimits,
    JsonBodyMiddleware,
)
from ttmark.shared.http.service_errors import error_renderer

BODY = b"[" + b"1," * LONG_BODY_BYTES + b"1]"


class Upload:
    """A request whose body arrives when the test says so."""

    def __init__(self, tenant: str, *, declared: bool = True) -> None:
        self.begun = False
        self.asked = asyncio.Event()
        self.arrived = asyncio.Event()
        headers = [(b"content-type", b"application/json")]
        if declared:
            headers.append((b"content-length", str(len(BODY)).encode()))
        self.scope = {
            "type": "http",
            "method": "POST",
            "path": "/",
            "headers": headers,
            "state": {"principal": Principal(f"token of {tenant}", tenant, frozenset())},
        }

    async def receive(self) -> Message:
        if not self.begun:  # what a sender without a turn is heard for
            self.begun = True
            return {"type": "http.request", "body": BODY[: LONG_BODY_BYTES + 1], "more_body": True}
        self.asked.set()
        await self.arrived.wait()
        return {"type": "http.request", "body": BODY[LONG_BODY_BYTES + 1 :], "more_body": False}

    def sent_to(self, middleware: JsonBodyMiddleware) -> "asyncio.Task[None]":
        async def nowhere(_: Message) -> None:
            raise AssertionError("refused")

        return asyncio.create_task(middleware(self.scope, self.receive, nowhere))


async def nothing(_: Scope, __: Receive, ___: Send) -> None:
    """The application behind it."""


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_tenant_s_long_bodies_are_read_a_few_at_a_time() -> None:
    middleware = JsonBodyMiddleware(nothing, HttpLimits(), error_renderer("problem"))
    greedy: list[Any] = [Upload("greedy", declared=index % 2 == 0) for index in range(5)]
    sent = [upload.sent_to(middleware) for upload in greedy]
    await settled()
    assert sum(upload.asked.is_set() for upload in greedy) == _LONG_BODIES_AT_ONCE
    other = Upload("other")
    other.arrived.set()
    await asyncio.wait_for(other.sent_to(middleware), 5)
    for upload in greedy:
        upload.arrived.set()
    await asyncio.wait_for(asyncio.gather(*sent), 5)
    assert all(upload.asked.is_set() for upload in greedy)


async def test_a_sender_who_leaves_gives_its_turn_up() -> None:
    middleware = JsonBodyMiddleware(nothing, HttpLimits(), error_renderer("problem"))
    stuck = [Upload("a").sent_to(middleware) for _ in range(_LONG_BODIES_AT_ONCE)]
    await settled()
    for task in stuck:
        task.cancel()
    await asyncio.gather(*stuck, return_exceptions=True)
    next_one = Upload("a")
    next_one.arrived.set()
    await asyncio.wait_for(next_one.sent_to(middleware), 5)
