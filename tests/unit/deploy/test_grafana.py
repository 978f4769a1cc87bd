"""The dashboards: complete, and provisioned from where Compose mounts them."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

SUBJECTS = ("overview", "generation", "latency", "engine", "detection", "keys")
UIDS = {f"ttmark-{subject}" for subject in SUBJECTS}


@pytest.fixture(scope="module")
def dashboards(root: Path) -> dict[str, dict[str, Any]]:
    folder = root / "deploy/grafana/dashboards"
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def test_there_is_a_dashboard_for_each_subject_whose_panels_have_a_description_a_query_and_a_place(
    dashboards: dict[str, dict[str, Any]],
) -> None:
    assert {document["uid"] for document in dashboards.values()} == UIDS
    assert all(name == document["uid"] for name, document in dashboards.items())
    for document in dashboards.values():
        panels = document["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        taken: set[tuple[int, int]] = set()
        for panel in panels:
            box = panel["gridPos"]
            assert box["x"] + box["w"] <= 24
            columns, rows = (range(box[at], box[at] + box[size]) for at, size in ("xw", "yh"))
            cells = set(itertools.product(columns, rows))
            assert not cells & taken, panel["title"]
            taken |= cells
            if panel["type"] != "row":
                assert panel["description"], panel["title"]
                assert panel["targets"], panel["title"]


def test_latencies_of_every_board_are_told_by_their_median_95th_and_99th_percentile(dashboards) -> None:
    """The heart of the distribution, what one in twenty hears, and the tail."""
    quantiles: dict[str, set[str]] = {}
    for board, document in dashboards.items():
        for panel in document["panels"]:
            for target in panel.get("targets", []):
                if found := re.match(r"histogram_quantile\((\S+), .*_seconds_bucket", target["expr"]):
                    quantiles.setdefault(f"{board}: {panel['title']}", set()).add(found[1])
    assert len(quantiles) >= 12
    assert {place: found for place, found in quantiles.items() if found != {"0.5", "0.95", "0.99"}} == {}


def test_one_board_has_the_latencies_of_both_services_by_the_chosen_models(dashboards) -> None:
    board = dashboards["ttmark-latency"]
    (variable,) = board["templating"]["list"]
    assert (variable["name"], variable["includeAll"], variable["multi"]) == ("model", True, True)
    by_model = " ".join(
        target["expr"]
        for panel in board["panels"]
        for target in panel.get("targets", [])
        if "sum by (le, model)" in target["expr"] and 'model=~"$model"' in target["expr"]
    )
    for series in (
        "ttmark_gen_time_to_first_token_seconds",
        "ttmark_gen_time_per_output_token_seconds",
        "ttmark_gen_completion_duration_seconds",
        "ttmark_engine_queue_seconds",
        'ttmark_http_request_duration_seconds_bucket{job="ttmark-gen"',
        'ttmark_http_request_duration_seconds_bucket{job="ttmark-detect"',
    ):
        assert by_model.count(series) == 3, series
    for document in dashboards.values():
        own = {f"${one['name']}" for one in document.get("templating", {}).get("list", [])}
        used = set(re.findall(r"\$(?!__)\w+", json.dumps(document["panels"])))
        assert used <= own, document["title"]


def test_grafana_is_provisioned_with_the_prometheus_and_the_folder_of_compose(root, compose, dashboards):
    provisioning = root / "deploy/grafana/provisioning"
    source = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"][0]
    provider = yaml.safe_load((provisioning / "dashboards/ttmark.yml").read_text())["providers"][0]
    assert source["url"] == "http://prometheus:9090"
    used = {
        panel["datasource"]["uid"]
        for document in dashboards.values()
        for panel in document["panels"]
        if panel["type"] != "row"
    }
    assert used == {source["uid"]}
    mounts = [volume.split(":") for volume in compose["services"]["grafana"]["volumes"]]
    assert ["./deploy/grafana/dashboards", provider["options"]["path"], "ro"] in mounts
    home = compose["services"]["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{provider['options']['path']}/ttmark-overview.json"
