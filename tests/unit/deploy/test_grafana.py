"""The dashboards: complete, and provisioned from where Compose mounts them."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

UIDS = {"ttmark-overview", "ttmark-generation", "ttmark-engine", "ttmark-detection", "ttmark-keys"}


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
