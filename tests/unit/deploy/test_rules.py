"""Alert and recording rules: valid, unit-tested with promtool, each alert with a runbook and a time."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

SEVERITIES = {"warning", "critical"}


@pytest.fixture(scope="module")
def promtool() -> str:
    path = shutil.which("promtool")
    if path is None:
        pytest.skip("promtool is missing; it comes with Debian's package `prometheus`")
    return path


@pytest.fixture(scope="module")
def alerts(root: Path) -> list[dict[str, Any]]:
    document = yaml.safe_load((root / "deploy/prometheus/rules/alerts.yml").read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def promtool_says(command: list[str | Path]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_rules_are_valid_and_pass_their_unit_tests(root: Path, promtool: str) -> None:
    promtool_says([promtool, "check", "config", root / "deploy/prometheus/prometheus.yml"])
    promtool_says([promtool, "test", "rules", *sorted((root / "tests/unit/deploy/rules").glob("*.yml"))])


def test_every_alert_is_shown_to_fire_at_its_stated_time(root: Path, alerts: list[dict[str, Any]]) -> None:
    texts = [path.read_text() for path in (root / "tests/unit/deploy/rules").glob("*.yml")]
    fired = {
        case["alertname"]
        for text in texts
        for test in yaml.safe_load(text)["tests"]
        for case in test.get("alert_rule_test", [])
        if case["exp_alerts"]
    }
    assert {alert["alert"] for alert in alerts} == fired


def test_every_alert_has_a_severity_a_time_and_a_runbook_and_no_runbook_outlives_its_alert(root, alerts):
    for alert in alerts:
        assert alert["labels"]["severity"] in SEVERITIES, alert["alert"]
        assert re.fullmatch(r"\d+[mh]", alert["annotations"]["within"]), alert["alert"]
        assert alert["annotations"]["runbook_url"] == f"{{{{ $externalURL }}}}/consoles/{alert['alert']}.md"
        runbook = (root / f"docs/runbooks/{alert['alert']}.md").read_text()
        assert runbook.startswith(f"# {alert['alert']}\n")
        for section in ("**Impact.**", "**Look.**", "**Do.**"):
            assert section in runbook, alert["alert"]
    names = {path.stem for path in (root / "docs/runbooks").glob("*.md")} - {"README"}
    assert names == {alert["alert"] for alert in alerts}
