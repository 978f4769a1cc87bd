"""How long a refused client is told to wait."""

import pytest

from ttmark.gen_service.engine.scheduling import fair_share
from ttmark.gen_service.engine.scheduling.fair_share import DrainRate


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(fair_share, "time", clock)
    return clock


def test_the_wait_is_the_time_in_which_half_of_the_requests_leave(clock: Clock) -> None:
    rate = DrainRate()
    for _ in range(20):
        rate.tick()
        clock.now += 0.5
    assert rate.seconds_until_free(40) == pytest.approx(10.0)
    assert rate.seconds_until_free(1) == 1.0
    assert rate.seconds_until_free(10_000) == 60.0
    assert DrainRate().seconds_until_free(100) == 1.0


def test_a_time_without_requests_does_not_count(clock: Clock) -> None:
    rate = DrainRate()
    for _ in range(3):
        for _ in range(5):
            clock.now += 0.5
            rate.tick()
        rate.rest()
        clock.now += 3600.0
    assert rate.seconds_until_free(40) == pytest.approx(10.0)
