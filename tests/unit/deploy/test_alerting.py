"""An alert on its way: Prometheus, Alertmanager, a contact point, and the runbook that it links to."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import pytest
import yaml

from tests.harness.observe.prometheus import Prometheus
from tests.harness.observe.services import answers, free_port
from tests.harness.played_server import played

pytestmark = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("prometheus-alertmanager")),
    reason="prometheus or prometheus-alertmanager is missing; Debian's packages have their names",
)
SECONDS = 60.0


@pytest.fixture
def told() -> Iterator[tuple[str, Queue[dict[str, Any]]]]:
    """A contact point: its address, and what it is sent."""
    sent: Queue[dict[str, Any]] = Queue()

    def answer(_: str, alert: bytes) -> tuple[int, bytes]:
        sent.put(json.loads(alert))
        return 200, b""

    with played(answer) as address:
        yield f"{address}/hook", sent


@pytest.fixture
def alertmanager(root: Path, tmp_path: Path, told: tuple[str, Queue[dict[str, Any]]]) -> Iterator[str]:
    """Address of one whose route names the contact point that stands in our file as an example."""
    configuration = yaml.safe_load((root / "deploy/alertmanager/alertmanager.yml").read_text())
    configuration["route"] = {"receiver": "example", "group_wait": "1s", "group_by": ["alertname"]}
    configuration["receivers"][1]["webhook_configs"][0]["url"] = told[0]
    (tmp_path / "alertmanager.yml").write_text(yaml.safe_dump(configuration))
    address = f"127.0.0.1:{free_port()}"
    options = [
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
        f"--storage.path={tmp_path / 'kept'}",
    ]
    with (tmp_path / "alertmanager.log").open("wb") as log:
        process = subprocess.Popen(
            ["prometheus-alertmanager", f"--config.file={tmp_path / 'alertmanager.yml'}", *options],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    deadline = time.monotonic() + SECONDS
    while not answers(f"http://{address}/-/ready"):
        assert process.poll() is None, (tmp_path / "alertmanager.log").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    yield address
    process.terminate()
    process.wait(30)


def test_a_contact_point_is_told_of_a_service_that_is_down_with_a_link_that_opens(
    tmp_path: Path, alertmanager: str, told: tuple[str, Queue[dict[str, Any]]]
) -> None:
    targets = {"ttmark-gen": [f"127.0.0.1:{free_port()}"]}
    with Prometheus(tmp_path / "prometheus", free_port(), targets, alertmanagers=[alertmanager], waits=False):
        names: set[str] = set()
        while "TTMarkServiceDown" not in names:
            alerts = told[1].get(timeout=SECONDS)["alerts"]
            names |= {alert["labels"]["alertname"] for alert in alerts}
        page = httpx.get(alerts[0]["annotations"]["runbook_url"])
        assert page.status_code == 200
        assert page.text.startswith(f"# {alerts[0]['labels']['alertname']}\n")


def test_the_runbook_of_every_alert_opens_in_prometheus(root: Path, tmp_path: Path) -> None:
    with Prometheus(tmp_path, free_port(), {}) as prometheus:
        for rule in prometheus.rules():
            if rule["type"] == "alerting":
                url = rule["annotations"]["runbook_url"].replace("{{ $externalURL }}", prometheus.url)
                page = httpx.get(url)
                assert page.status_code == 200, url
                assert page.text == (root / f"docs/runbooks/{rule['name']}.md").read_text()
                assert page.headers["Content-Type"].startswith("text/plain")


def test_our_file_is_one_and_tells_nobody_until_it_names_somebody(root: Path) -> None:
    path = root / "deploy/alertmanager/alertmanager.yml"
    if amtool := shutil.which("amtool"):
        subprocess.run([amtool, "check-config", path], check=True, capture_output=True)
    route = yaml.safe_load(path.read_text())["route"]
    assert {route["receiver"], *(each["receiver"] for each in route["routes"])} == {"nobody"}
