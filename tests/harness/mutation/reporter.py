"""Pytest's hooks of a run: which tests, in which order, and how they went."""

from collections.abc import Sequence

import pytest


class Reporter:
    """Chooses and orders the tests, and notes how they went."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._order = {test: place for place, test in enumerate(tests) if "::" in test}
        self.seconds: dict[str, float] = {}
        self.failed = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [
            item for item in items if not any("smollm2" in name for name in getattr(item, "fixturenames", ()))
        ]
        if self._order:
            items[:] = [item for item in items if item.nodeid in self._order]
            items.sort(key=lambda item: self._order[item.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid
            self.seconds.pop(report.nodeid, None)
        elif report.passed and (report.when == "setup" or report.nodeid in self.seconds):
            self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        elif report.skipped:
            self.seconds.pop(report.nodeid, None)
