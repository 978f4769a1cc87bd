"""The price of being watched."""

import statistics
from pathlib import Path

import pytest

from tests.harness.observe.scrape_cost import STREAMS, measure
from tests.harness.observe.services import Bed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_scraping_costs_little_while_64_completions_are_streamed(tmp_path: Path, model: str) -> None:
    settings = {"TTMARK_MAX_CONCURRENCY": str(STREAMS), "TTMARK_MAX_QUEUE": str(STREAMS)}
    with Bed(tmp_path, model=model, settings=settings) as bed:
        bed.stop("canary")
        cost = measure(bed, windows=6, seconds=8)
    print(cost, f"lost share {cost.lost_share:.4f}")
    # A scrape each 15 s, as configured, costs a fifteenth of this.
    assert cost.own_cpu_share / 15 < 0.01
    assert statistics.median(cost.scrape_seconds) < 0.05
