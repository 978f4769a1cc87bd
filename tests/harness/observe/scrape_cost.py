"""What /metrics costs while many completions are streamed."""

import math
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import psutil

from tests.harness.observe.services import Bed

STREAMS = 64
SCRAPE_EVERY_SECONDS = 1.0  # fifteen times as often as deploy/prometheus does


@dataclass(frozen=True)
class ScrapeCost:
    """Figures of one measurement.

    Attributes:
        plain, scraped: generated tokens per second in each window, without and with a scraper.
        scrape_seconds: how long each scrape took, under load.
        own_cpu_share: CPU time of rendering the page once a second, measured without load, of one core.
    """

    plain: list[float]
    scraped: list[float]
    scrape_seconds: list[float]
    own_cpu_share: float
    bytes: int

    @property
    def lost_share(self) -> float:
        """Share of the throughput that scraping once a second costs; NaN where nothing was generated."""
        plain = statistics.fmean(self.plain)
        return 1 - statistics.fmean(self.scraped) / plain if plain else math.nan


def measure(bed: Bed, *, windows: int, seconds: float) -> ScrapeCost:
    """Alternates windows of `seconds` with and without a scraper, under STREAMS concurrent streams."""
    plain: list[float] = []
    scraped: list[float] = []
    times: list[float] = []
    size = 0
    with httpx.Client(base_url=bed.url("gen"), timeout=30) as client:
        client.get("/metrics")
        share = _cpu_share(bed, client)
        with _streams(bed):
            time.sleep(seconds)
            for _ in range(windows):
                plain.append(_tokens_per_second(client, seconds))
                with _scraping(client, times):
                    scraped.append(_tokens_per_second(client, seconds))
            size = len(client.get("/metrics").content)
    return ScrapeCost(plain, scraped, times, share, size)


def _cpu_share(bed: Bed, client: httpx.Client, scrapes: int = 50) -> float:
    """CPU seconds of the service per scrape, so per second at one scrape a second."""
    process = psutil.Process(bed.processes["gen"].pid)
    before = sum(process.cpu_times()[:2])
    for _ in range(scrapes):
        client.get("/metrics")
    return float(sum(process.cpu_times()[:2]) - before) / scrapes


def _tokens_per_second(client: httpx.Client, seconds: float) -> float:
    before, started = _tokens(client), time.monotonic()
    time.sleep(seconds)
    return (_tokens(client) - before) / (time.monotonic() - started)


def _tokens(client: httpx.Client) -> float:
    for line in client.get("/metrics").text.splitlines():
        if line.startswith('ttmark_engine_rows_total{kind="commit"'):
            return float(line.split()[-1])
    raise LookupError("ttmark_engine_rows_total")


@contextmanager
def _scraping(client: httpx.Client, times: list[float]) -> Iterator[None]:
    stop = threading.Event()

    def scrape() -> None:
        while not stop.wait(SCRAPE_EVERY_SECONDS):
            started = time.perf_counter()
            client.get("/metrics")
            times.append(time.perf_counter() - started)

    thread = threading.Thread(target=scrape, daemon=True)
    thread.start()
    yield
    stop.set()
    thread.join()


@contextmanager
def _streams(bed: Bed) -> Iterator[None]:
    stop = threading.Event()
    body = {"model": bed.setup.model_id, "prompt": "The command", "max_tokens": 400, "stream": True}
    body |= {"ignore_eos": True}
    headers = {"Authorization": f"Bearer {bed.setup.token}"}

    def stream() -> None:
        with httpx.Client(base_url=bed.url("gen"), headers=headers, timeout=120) as client:
            while not stop.is_set():
                with client.stream("POST", "/v1/completions", json=body) as response:
                    for _ in response.iter_lines():
                        if stop.is_set():
                            break

    threads = [threading.Thread(target=stream, daemon=True) for _ in range(STREAMS)]
    for thread in threads:
        thread.start()
    yield
    stop.set()
    for thread in threads:
        thread.join(30)
