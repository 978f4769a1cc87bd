"""One way to ask both clients, so that what is tested of one is tested of the other."""

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from ttmark.shared.client import AsyncClient, Client


class EitherClient:
    """Calls of `Client`, or of `AsyncClient` as a loop runs them; an iterator of either gives a list."""

    def __init__(self, client: Client | AsyncClient) -> None:
        self.client = client
        self._runner = asyncio.Runner()

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            return self._runner.run(_finished(getattr(self.client, name)(*arguments, **options)))

        return call

    def close(self) -> None:
        if isinstance(self.client, AsyncClient):
            self._runner.run(self.client.__aexit__())
        else:
            self.client.__exit__()
        self._runner.close()


async def _finished(given: Any) -> Any:
    if inspect.isawaitable(given):
        return await given
    if inspect.isasyncgen(given):
        return [one async for one in given]
    return list(given) if inspect.isgenerator(given) else given


@contextmanager
def either(
    kind: str,
    url: str,
    token: str | None = "token",
    *,
    transport: httpx.MockTransport | None = None,
    **options: Any,
) -> Iterator[EitherClient]:
    """The client of a kind, `sync` or `async`."""
    made: Client | AsyncClient
    if kind == "sync":
        made = Client(url, token, transport=transport, **options)
    else:
        made = AsyncClient(url, token, transport=transport, **options)
    client = EitherClient(made)
    try:
        yield client
    finally:
        client.close()
