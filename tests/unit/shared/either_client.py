"""One way to ask both clients, so that what is tested of one is tested of the other."""

import asyncio
import inspect
from typing import Any, Self

from ttmark.shared.client import AsyncClient, Client


class EitherClient:
    """Calls of `Client`, or of `AsyncClient` as a loop runs them; an iterator of either gives a list."""

    def __init__(self, kind: str, url: str, token: str | None, **options: Any) -> None:
        self._client = (Client if kind == "sync" else AsyncClient)(url, token, **options)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if isinstance(self._client, AsyncClient):
            self._runner.run(self._client.__aexit__())
        else:
            self._client.__exit__()
        self._runner.close()

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            return self._runner.run(_finished(getattr(self._client, name)(*arguments, **options)))

        return call


async def _finished(given: Any) -> Any:
    if inspect.isawaitable(given):
        return await given
    if inspect.isasyncgen(given):
        return [one async for one in given]
    return list(given) if inspect.isgenerator(given) else given
