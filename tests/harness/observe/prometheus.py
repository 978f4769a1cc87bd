"""A Prometheus on loopback with the rules of deploy/prometheus, and its query API."""

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import httpx
import yaml

from tests.harness.observe.services import answers

ROOT = Path(__file__).parents[3]
RULES = ROOT / "deploy/prometheus/rules"
START_SECONDS = 30.0


class Prometheus:
    """Runs Debian's `prometheus` until the block is left; unless it `waits`, alerts fire at once."""

    def __init__(
        self,
        folder: Path,
        port: int,
        targets: Mapping[str, list[str]],
        *,
        alertmanagers: Sequence[str] = (),
        waits: bool = True,
    ) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._folder = folder
        self._port = port
        self._targets = targets
        self._alertmanagers = list(alertmanagers)
        self._waits = waits
        self._http = httpx.Client(base_url=self.url, timeout=30)

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write_configuration()
        with (self._folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    shutil.which("prometheus") or "prometheus",
                    f"--config.file={self._folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                    f"--web.external-url={self.url}",
                    f"--web.console.templates={ROOT / 'docs/runbooks'}",
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while not answers(f"{self.url}/-/ready"):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self._folder / "prometheus.log").read_text())
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()
        self._process.terminate()
        self._process.wait(30)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The instant vector; a scalar as a vector of one."""
        answer = self._http.get("/api/v1/query", params={"query": expression}).json()
        if answer["status"] != "success":
            raise ValueError(answer["error"])
        data = answer["data"]
        if data["resultType"] == "scalar":
            return [{"metric": {}, "value": data["result"]}]
        result: list[dict[str, Any]] = data["result"]
        return result

    def label_values(self, series: str, label: str) -> list[str]:
        answer = self._http.get(f"/api/v1/label/{label}/values", params={"match[]": series}).json()
        if answer["status"] != "success":
            raise ValueError(answer["error"])
        values: list[str] = answer["data"]
        return values

    def rules(self) -> list[dict[str, Any]]:
        """Every rule with its health and, where it failed, its last error."""
        groups = self._http.get("/api/v1/rules").json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def _write_configuration(self) -> None:
        for path in RULES.glob("*.yml"):
            document = yaml.safe_load(path.read_text())
            if not self._waits:
                for group in document["groups"]:
                    for rule in group["rules"]:
                        rule.pop("for", None)
            (self._folder / path.name).write_text(yaml.safe_dump(document, sort_keys=False))
        configuration = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": self._alertmanagers}]}]},
            "rule_files": [path.name for path in RULES.glob("*.yml")],
            "scrape_configs": [
                {"job_name": job, "static_configs": [{"targets": addresses}]}
                for job, addresses in self._targets.items()
            ],
        }
        (self._folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
