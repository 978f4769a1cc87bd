"""Ten times more requests than the service can do: it says no at once and goes on as fast as before."""

import asyncio
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil
import pytest

pytestmark = pytest.mark.long

FACTOR = 10
# Enough to keep every place busy, few enough that nobody is refused.
PLACES, QUEUE = 8, 8
SETTINGS = {
    "dtype": "float32",
    "max_concurrency": PLACES,
    "max_queue": QUEUE,
    "requests_per_minute": 0,
    "tokens_per_minute": 0,
    "log_level": "WARNING",
}
SLOWEST_REJECTION = 0.05
LEAST_GOODPUT = 0.9
MOST_GROWTH = 1.05


@dataclass
class Seen:
    """What clients saw in one phase."""

    seconds: float
    started: float = field(default_factory=time.monotonic)
    completed: list[float] = field(default_factory=list)
    rejections: list[float] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)

    @property
    def goodput(self) -> float:
        """Completions per second, once the phase has settled."""
        settled = self.seconds / 6
        return sum(settled < end <= self.seconds for end in self.completed) / (self.seconds - settled)

    @property
    def passed(self) -> float:
        """Seconds since the phase began."""
        return time.monotonic() - self.started


class Load:
    """Sends completions to one service and notes what becomes of them."""

    def __init__(self, http: httpx.AsyncClient, model: str, process: psutil.Process, max_tokens: int) -> None:
        self._http = http
        self._process = process
        self._body = {
            "model": model,
            "prompt": "The quick brown fox",
            "max_tokens": max_tokens,
            "top_k": 10,
            "ignore_eos": True,
        }

    async def peak(self, seconds: float) -> Seen:
        """As many clients as the service has places for, each with one request at a time."""
        seen = Seen(seconds)

        async def work() -> None:
            while seen.passed < seconds or len(seen.completed) < 3 * PLACES:
                await self._ask(seen)

        await asyncio.gather(*(work() for _ in range(PLACES + QUEUE // 2)))
        seen.seconds = seen.completed[-1]
        return seen

    async def overload(self, rate: float, seconds: float) -> Seen:
        """Requests at a fixed rate, whatever becomes of those before."""
        seen = Seen(seconds)
        requests: set[asyncio.Task[None]] = set()
        looking = asyncio.create_task(self._watch(seen))
        sent = 0
        while seen.passed < seconds:
            while sent < seen.passed * rate:
                task = asyncio.create_task(self._ask(seen))
                requests.add(task)
                task.add_done_callback(requests.discard)
                sent += 1
            await asyncio.sleep(0.005)
        looking.cancel()
        await asyncio.gather(*requests)
        return seen

    async def _ask(self, seen: Seen) -> None:
        asked = time.perf_counter()
        response = await self._http.post("/v1/completions", json=self._body)
        if response.status_code == 429:
            seen.rejections.append(time.perf_counter() - asked)
            seen.waits.append(int(response.headers["retry-after"]))
        else:
            response.raise_for_status()
            assert response.json()["usage"]["completion_tokens"] == self._body["max_tokens"]
            seen.completed.append(seen.passed)

    async def _watch(self, seen: Seen) -> None:
        while True:
            seen.resident.append(self._process.memory_info().rss)
            await asyncio.sleep(0.5)


async def run_overload(
    start: Any, setup: Any, *, seconds: float, peak_seconds: float, max_tokens: int
) -> tuple[Seen, Seen]:
    """The same service at its peak, then overloaded."""
    service = start(setup, **SETTINGS)
    service.wait_until_ready()
    headers = {"Authorization": f"Bearer {setup.token}"}
    # The service closes connections that were idle for 5 s; one that it is closing must not be used again.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=200, keepalive_expiry=1)
    async with httpx.AsyncClient(base_url=service.url, headers=headers, timeout=120, limits=limits) as http:
        load = Load(http, setup.model_id, psutil.Process(service.pid), max_tokens)
        peak = await load.peak(peak_seconds)
        overloaded = await load.overload(FACTOR * peak.goodput, seconds)
        assert (await http.get("/readyz")).status_code == 200
    assert peak.rejections == []
    assert overloaded.rejections
    assert min(overloaded.waits) >= 1
    return peak, overloaded


async def test_an_overloaded_service_refuses_and_goes_on(start: Any, tiny_setup: Any) -> None:
    """How much of the peak is left is for a quiet machine to say."""
    peak, seen = await run_overload(start, tiny_setup, seconds=2, peak_seconds=1, max_tokens=40)
    assert min(len(peak.completed), len(seen.completed)) >= PLACES


@pytest.mark.slow
async def test_a_minute_of_tenfold_load_costs_no_goodput_and_no_memory(start, demo_setup, record_result):
    peak, seen = await run_overload(start, demo_setup, seconds=60, peak_seconds=20, max_tokens=120)
    rejections = sorted(seen.rejections)
    p99 = rejections[int(0.99 * len(rejections))]
    settled = seen.resident[len(seen.resident) // 6 :]
    memory = f"resident {settled[0] >> 20} to {settled[-1] >> 20} MiB"
    refused = (
        f"{len(rejections):,} rejections, median {statistics.median(rejections) * 1000:.0f} ms, "
        f"p99 {p99 * 1000:.0f} ms, Retry-After {min(seen.waits)} to {max(seen.waits)} s"
    )
    done = f"goodput {seen.goodput:.1f}/s of {peak.goodput:.1f}/s ({seen.goodput / peak.goodput:.0%})"
    record_result(
        f"{FACTOR}x overload for a minute, demo model",
        f"memory bounded, rejections < {SLOWEST_REJECTION * 1000:.0f} ms with Retry-After, "
        f"goodput >= {LEAST_GOODPUT:.0%} of the peak",
        f"{memory}; {refused}; {done}",
    )
    assert settled[-1] < MOST_GROWTH * settled[0]
    assert p99 < SLOWEST_REJECTION
    assert seen.goodput >= LEAST_GOODPUT * peak.goodput
