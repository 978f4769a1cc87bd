"""Waiting for what comes to pass by itself, and sets no event."""

import asyncio
import time
from collections.abc import Callable
from inspect import isawaitable
from typing import Any


def eventually(condition: Callable[[], Any], seconds: float = 40) -> float:
    """Waits until it holds; the seconds that it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "it did not come to pass"
        time.sleep(0.01)
    return time.monotonic() - began


async def until(condition: Callable[[], Any], seconds: float = 40) -> float:
    """The same, while others on the loop go on; the condition may be awaited."""
    began = time.monotonic()
    while not (await holds if isawaitable(holds := condition()) else holds):
        assert time.monotonic() - began < seconds, "it did not come to pass"
        await asyncio.sleep(0.005)
    return time.monotonic() - began
