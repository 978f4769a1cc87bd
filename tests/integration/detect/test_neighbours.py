"""One tenant sends the dearest requests over 44 connections; another one hardly notices."""

from pathlib import Path

import pytest

from tests.integration.detect.neighbours import measure

pytestmark = pytest.mark.long

# Wide, for a busy machine. Without turns the second tenant waits for seconds, and work goes on for minutes.
MOST_GROWTH = 10
SLACK_MS = 150
SILENCE_MS = 500
SECONDS_UNTIL_IDLE = 3.0


@pytest.mark.parametrize("kind", ["text", pytest.param("batch", marks=pytest.mark.slow)])
def test_a_tenant_is_answered_whatever_its_neighbour_sends(tmp_path: Path, kind: str) -> None:
    report = measure(tmp_path, connections=44, seconds=3, kind=kind)
    assert report.busy_p99 <= MOST_GROWTH * report.idle_p99 + SLACK_MS, report
    assert report.health_p99 <= SILENCE_MS, report
    assert report.metrics_p99 <= SILENCE_MS, report
    assert report.seconds_until_idle <= SECONDS_UNTIL_IDLE, report
