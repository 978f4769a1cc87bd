"""The generated documentation, and the conventions that metrics keep."""

import json
import re
from pathlib import Path

import pytest

from tests.harness.reference.__main__ import END, generated
from tests.harness.reference.metrics_table import services
from tests.harness.reference.settings_table import OTHERS, TOPICS, settings_table, topic

METRIC_IN_PROMQL = re.compile(r"(?<![:\w])(ttmark_\w+)(?![\w:])")


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs/metrics.md").read_text()


@pytest.fixture(scope="module")
def metrics() -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Type, labels and text of each metric of ours."""
    return {
        one.name: (one.kind, one.labels, one.text)
        for several in services().values()
        for one in several
        if one.name.startswith("ttmark_")
    }


@pytest.fixture(scope="module")
def used(root: Path) -> set[str]:
    """Metrics that a panel or a rule reads, without the suffixes of histograms."""
    texts = [path.read_text() for path in (root / "deploy/prometheus/rules").glob("*.yml")]
    for path in (root / "deploy/grafana/dashboards").glob("*.json"):
        for panel in json.loads(path.read_text())["panels"]:
            texts += [target["expr"] for target in panel.get("targets", [])]
    names = {name for text in texts for name in METRIC_IN_PROMQL.findall(text)}
    return {re.sub("_(bucket|sum|count)$", "", name) for name in names}


def test_the_documentation_is_what_the_generator_writes() -> None:
    stale = [path.name for path, text in generated().items() if path.read_text() != text]
    assert stale == [], "run python -m tests.harness.reference"


def test_each_setting_has_one_line_under_its_topic() -> None:
    names = re.findall(r"^- `(TTMARK_\w+)", settings_table(), re.M)
    assert len(names) == len(set(names)) <= 91
    assert f"## {OTHERS}" not in settings_table(), "give the setting a topic in settings_table.py"
    matches = {title: [name for name in names if topic(name[7:].lower()) == title] for title, _ in TOPICS}
    assert [title for title, found in matches.items() if not found] == []


def test_names_and_units_follow_the_conventions(metrics: dict[str, tuple[str, tuple[str, ...], str]]) -> None:
    for name, (kind, _, text) in metrics.items():
        assert re.fullmatch(r"ttmark(_[a-z0-9]+)+", name), name
        assert name.endswith("_total") == (kind == "counter"), name
        assert not re.search(r"_(ms|milliseconds|minutes|percent|kb|mb)\b", name), name
        assert text.endswith("."), name
        if re.search(r"duration|latency|age|time_to|time_per", name):
            assert name.removesuffix("_total").endswith("_seconds"), name


def test_every_label_is_bounded_and_explained(page, metrics):
    explained = set(re.findall(r"^- (\w+): .+$", page.split("## Labels")[1], re.M))
    labels = {label for _, names, _ in metrics.values() for label in names}
    assert labels <= explained
    assert not labels & {"le", "path", "url", "token", "tenant", "key", "key_id", "user", "request_id"}


def test_dashboards_and_rules_read_metrics_that_there_are_and_each_metric_is_read(metrics, used):
    assert used - metrics.keys() == set()
    assert metrics.keys() - used == {
        "ttmark_canary_last_ok_timestamp_seconds",
        "ttmark_canary_step_duration_seconds",
    }


def test_links_between_documents_lead_somewhere(root: Path) -> None:
    docs = root / "docs"
    documents = [root / "README.md", root / "CHANGELOG.md", *docs.rglob("*.md")]
    broken = [
        f"{path.name}: {target}"
        for path in documents
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text())
        if not target.startswith("http") and not (path.parent / target).exists()
    ]
    assert broken == []


def test_the_guide_names_only_settings_that_there_are(root: Path) -> None:
    pages = {path.name: path.read_text() for path in (root / "docs/operations").glob("*.md")}
    table, rest = pages.pop("settings.md").split(END)
    known = set(re.findall(r"^- `(TTMARK_\w+)", table, re.M))
    compose_only = set(re.findall(r"^#?(TTMARK_\w+)=", (root / ".env.example").read_text(), re.M))
    runbooks = [path.read_text() for path in (root / "docs/runbooks").glob("*.md")]
    texts = [*pages.values(), rest, table.split("<!-- settings")[0], *runbooks]
    named = {name for text in texts for name in re.findall(r"TTMARK_[A-Z0-9_]*[A-Z0-9]", text)}
    assert named - known - compose_only == set()
