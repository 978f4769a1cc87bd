"""How many threads a processor has for us, on systems that say and on those that do not."""

import os

import pytest

from ttmark.detect_service.fair_work.fair_queue import WorkLimits
from ttmark.shared.cpu import usable_cores


def test_the_cores_of_this_process_count_not_those_of_the_machine() -> None:
    assert usable_cores() == len(os.sched_getaffinity(0))


def test_a_system_that_does_not_say_has_all_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert usable_cores() == 6
    assert WorkLimits().threads == 5
