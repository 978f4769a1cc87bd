"""No body holds a service's event loop for long, whatever it is made of."""

from collections.abc import Iterator

import pytest

from tests.harness.loop_pauses import BODIES, WatchedBed, rows

pytestmark = pytest.mark.long
MOST_MS = 50


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedBed]:
    with WatchedBed(tmp_path_factory.mktemp("watched")) as bed:
        yield bed


@pytest.mark.parametrize("route", BODIES)
def test_the_longest_pause_under_a_route_s_worst_bodies(bed: WatchedBed, route: str) -> None:
    assert [row for row in rows(bed, route) if row.ms > MOST_MS] == []
