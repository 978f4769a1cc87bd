"""Faults in the running services raise the right alert within the time that the alert states."""

import random
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from tests.harness.observe.prometheus import RULES, Prometheus
from tests.harness.observe.services import Bed, free_port
from ttmark.shared.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(5400)]

SCRAPE_SECONDS = 15
UNIT_SECONDS = {"m": 60, "h": 3600}


def stated_seconds(alert: str) -> float:
    """The annotation `within` of an alert."""
    document = yaml.safe_load((RULES / "alerts.yml").read_text())
    rules = {rule["alert"]: rule for group in document["groups"] for rule in group["rules"]}
    number, unit = re.fullmatch(r"(\d+)([mh])", rules[alert]["annotations"]["within"]).groups()
    return int(number) * UNIT_SECONDS[unit]


@contextmanager
def repeating(action: Callable[[], None], pause: float) -> Iterator[None]:
    """Does something again and again in another thread; errors of the services are expected."""
    stop = threading.Event()

    def loop() -> None:
        while not stop.wait(pause):
            try:
                action()
            except httpx.HTTPError:
                continue

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    yield
    stop.set()
    thread.join(60)


def seconds_until_fires(prometheus: Prometheus, alert: str, limit: float) -> float:
    started = time.monotonic()
    while time.monotonic() - started < limit:
        if alert in prometheus.firing():
            return time.monotonic() - started
        time.sleep(1)
    pytest.fail(f"{alert} did not fire within {limit:.0f} s; firing: {prometheus.firing()}")


def complete(bed: Bed, timeout: float = 60) -> None:
    headers = {"Authorization": f"Bearer {bed.setup.token}"}
    body = {"model": bed.setup.model_id, "prompt": "The command", "max_tokens": 16}
    httpx.post(f"{bed.url('gen')}/v1/completions", json=body, headers=headers, timeout=timeout)


def test_a_store_outage_is_reported_while_both_services_go_on(tmp_path: Path, model: str) -> None:
    port = free_port()
    command = [
        shutil.which("redis-server"),
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--dir",
        str(tmp_path),
    ]
    redis = subprocess.Popen([*command, "--save", ""], stdout=subprocess.DEVNULL)
    try:
        time.sleep(1)
        with (
            Bed(tmp_path / "bed", model=model, store_url=f"redis://127.0.0.1:{port}/0") as bed,
            Prometheus(
                tmp_path / "prometheus", free_port(), bed.targets, interval=SCRAPE_SECONDS
            ) as prometheus,
        ):
            time.sleep(2 * SCRAPE_SECONDS)
            assert "TTMarkKeyStoreUnreachable" not in prometheus.firing()
            redis.kill()
            redis.wait()
            limit = stated_seconds("TTMarkKeyStoreUnreachable")
            seconds = seconds_until_fires(prometheus, "TTMarkKeyStoreUnreachable", limit)
            print(f"TTMarkKeyStoreUnreachable after {seconds:.0f} s of {limit:.0f} s")
            with Client(bed.url("gen"), bed.setup.token) as client:
                client.complete({"model": bed.setup.model_id, "prompt": "On", "max_tokens": 8})
    finally:
        redis.kill()
        redis.wait()


def test_a_stuck_engine_is_reported(tmp_path: Path, model: str) -> None:
    with (
        Bed(tmp_path / "bed", model=model, with_faults=True) as bed,
        Prometheus(tmp_path / "prometheus", free_port(), bed.targets, interval=SCRAPE_SECONDS) as prometheus,
        repeating(lambda: complete(bed, timeout=5), 0.5),
    ):
        time.sleep(3 * SCRAPE_SECONDS)
        assert "TTMarkEngineStuck" not in prometheus.firing()
        bed.fault("stuck-engine", on=True)
        limit = stated_seconds("TTMarkEngineStuck")
        seconds = seconds_until_fires(prometheus, "TTMarkEngineStuck", limit)
        print(f"TTMarkEngineStuck after {seconds:.0f} s of {limit:.0f} s")
        bed.fault("stuck-engine", on=False)


def test_a_broken_null_is_reported_and_a_sound_one_is_not(tmp_path: Path, model: str) -> None:
    generator = random.Random(0)

    def detect() -> None:
        documents = [{"token_ids": [generator.randrange(4000) for _ in range(200)]} for _ in range(20)]
        headers = {"Authorization": f"Bearer {bed.setup.token}"}
        url = f"{bed.url('detect')}/v1/detect/direct"
        httpx.post(url, json={"inputs": documents}, headers=headers, timeout=60)

    with (
        Bed(tmp_path / "bed", model=model, with_faults=True) as bed,
        Prometheus(tmp_path / "prometheus", free_port(), bed.targets, interval=SCRAPE_SECONDS) as prometheus,
        repeating(detect, 2.0),
    ):
        time.sleep(6 * 60)
        assert "TTMarkNullDrift" not in prometheus.firing()
        bed.fault("broken-null", on=True)
        limit = stated_seconds("TTMarkNullDrift")
        seconds = seconds_until_fires(prometheus, "TTMarkNullDrift", limit)
        print(f"TTMarkNullDrift after {seconds:.0f} s of {limit:.0f} s")
