"""Work that goes on while an application serves."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from fastapi import FastAPI

from ttmark.shared.http.app import Lifespan


def beside(lifespan: Lifespan | None, works: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> Lifespan:
    """A lifespan that runs `works` inside of another one, and cancels them before that one ends."""

    @asynccontextmanager
    async def both(app: FastAPI) -> AsyncIterator[None]:
        async with lifespan(app) if lifespan is not None else nullcontext():
            tasks = [asyncio.create_task(work()) for work in works]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    return both
