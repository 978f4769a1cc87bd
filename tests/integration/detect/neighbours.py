"""What one tenant, who sends small requests, notices of another that sends `attack.py`'s, and hangs up."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import psutil

from tests.harness.job_tenants import provision
from tests.integration.detect.served import serving
from ttmark.evaluation.text_files import read_human_texts
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH, HUMAN_TEXTS_PATH
from ttmark.shared.tokenization import TextTokenizer

HERE = Path(__file__).parent
SMALL_TOKENS = 400
SETTINGS = {"TTMARK_ANSWERS_PER_PASSAGE": "0", "TTMARK_BLOCKS_PER_MINUTE": "0"}


@dataclass(frozen=True)
class Report:
    """Milliseconds, except for the last."""

    idle_p50: float
    idle_p99: float
    busy_p50: float
    busy_p99: float
    health_p99: float
    metrics_p99: float
    requests: int
    seconds_until_idle: float


def timed(ask: Callable[[], httpx.Response]) -> float:
    """Milliseconds until the answer, which has to be 200."""
    began = time.perf_counter()
    ask().raise_for_status()
    return (time.perf_counter() - began) * 1000


def p99(milliseconds: Sequence[float]) -> float:
    return round(float(np.quantile(milliseconds, 0.99)), 1)


def cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def seconds_until_idle(process: psutil.Process, patience: float) -> float:
    """How long a process goes on to use more than a fifth of a core."""
    began = time.perf_counter()
    idle_since = last = began
    spent = cpu(process)
    while (now := time.perf_counter()) - began < patience:
        time.sleep(0.05)
        used = cpu(process)
        if used - spent > 0.2 * (time.perf_counter() - last):
            idle_since = time.perf_counter()
        spent, last = used, time.perf_counter()
        if now - idle_since > 0.5:
            break
    return round(idle_since - began, 2)


def measure(folder: Path, *, connections: int, seconds: float, kind: str) -> Report:
    tokenizer = TextTokenizer.load(DEMO_MODEL_PATH)
    tokens = asyncio.run(provision(folder))
    text = "\n\n".join(read_human_texts(HUMAN_TEXTS_PATH))
    (folder / "text").write_text(text, encoding="utf-8")
    ids = tokenizer.encode(text[:200_000])
    small = [
        {"inputs": [{"text": tokenizer.decode(ids[i : i + SMALL_TOKENS])}]}
        for i in range(0, 40 * SMALL_TOKENS, SMALL_TOKENS)
    ]
    with (
        serving(folder, SETTINGS) as (port, service),
        httpx.Client(base_url=(url := f"http://127.0.0.1:{port}"), timeout=60) as client,
    ):
        process = psutil.Process(service.pid)
        headers = {"Authorization": f"Bearer {tokens['small']}"}

        def ask(number: int) -> float:
            body = small[number % len(small)]
            return timed(lambda: client.post("/v1/detect/direct", json=body, headers=headers))

        for number in range(100):
            ask(number)
        idle = [ask(number) for number in range(300)]
        attack = [sys.executable, str(HERE / "attack.py"), url, tokens["dear"], str(folder / "text"), kind]
        attacker = subprocess.Popen([*attack, str(connections)], stdout=subprocess.PIPE)
        try:
            assert attacker.stdout is not None
            attacker.stdout.readline()  # its bodies are made, and sent
            busy, health, metrics = [], [], []
            until = time.perf_counter() + seconds
            while time.perf_counter() < until:
                busy.append(ask(len(busy)))
                if len(busy) % 4 == 0:
                    health.append(timed(lambda: client.get("/healthz")))
                    metrics.append(timed(lambda: client.get("/metrics")))
            attacker.send_signal(signal.SIGKILL)
        finally:
            attacker.kill()
            attacker.communicate()  # closes the pipe
        left = seconds_until_idle(process, patience=30)
    return Report(
        idle_p50=round(float(np.median(idle)), 1),
        idle_p99=p99(idle),
        busy_p50=round(float(np.median(busy)), 1),
        busy_p99=p99(busy),
        health_p99=p99(health),
        metrics_p99=p99(metrics),
        requests=len(busy),
        seconds_until_idle=left,
    )
