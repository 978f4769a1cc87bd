"""Dashboards and rules against the running services, under traffic."""

from pathlib import Path

import pytest

from tests.harness.observe.__main__ import observe
from tests.harness.observe.check import summary

pytestmark = pytest.mark.long


def test_every_expression_of_every_panel_and_rule_has_data(tmp_path: Path, model: str) -> None:
    verdicts, answers = observe(tmp_path, model, seconds=150)
    assert [f"{v.expression.place}: {v.problem}" for v in verdicts if v.problem] == [], answers
    kinds = summary(verdicts)
    assert kinds["panel"][0] >= 75
    assert kinds["alert"][0] >= 20
    assert kinds["recording"][0] >= 10
