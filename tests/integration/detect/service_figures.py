"""The detection service's figures in one command: start, and questions over HTTP.

    python tests/integration/detect/service_figures.py [--with "chrt --rr 5"]

Starts two replicas with a key as `ttmark keys create` makes it in a temporary folder, times them until
`/readyz` says 200, and lets a process of its own send the shipped human texts: 400 tokens each as words, for
`localized` 10,000. What is asked is `/v1/detect` without options, then the paper's own three ways. Prints one
JSON object a line. `--with` goes before the commands of replicas and driver: a scheduling priority, where
other work shares the cores.

Before that it measures what the machine does for the least that such a service can be: the framework with a
route that answers with a constant, and the tokenizer alone. Ratios to their sum compare across machines.
"""

import argparse
import asyncio
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx
import numpy as np
import psutil

from tests.harness.job_tenants import provision
from tests.harness.observe.services import answers, free_port
from ttmark.evaluation.text_files import read_human_texts
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH, HUMAN_TEXTS_PATH
from ttmark.shared.schemas.profile_presets import profile_fields
from ttmark.shared.tokenization import TextTokenizer

# A service of one route that answers with a constant.
BARE = """
import sys
from typing import Any

import uvicorn
from fastapi import FastAPI

app = FastAPI()

@app.post("/v1/detect")
async def detect(body: dict[str, Any]) -> dict[str, Any]:
    return {"results": [{"id": "0", "verdict": "not_detected"}]}

@app.get("/readyz")
async def readyz() -> None:
    return None

uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_config=None, access_log=False)
"""


@dataclass(frozen=True)
class Load:
    """Requests over kept-alive connections, `rate` in a second; 0: as fast as the connections allow.

    Attributes:
        route: in `/v1`.
    """

    route: str = "detect"
    requests: int = 4_000
    connections: int = 16
    rate: int = 0


LOADS = {
    "as fast as 4 connections allow": Load(connections=4),
    "400 requests/s offered": Load(rate=400),
    "300 requests/s offered": Load(rate=300),
    "200 requests/s offered": Load(rate=200),
    "direct, as fast as 4 connections allow": Load("detect/direct", connections=4),
    "aligned, 2 connections": Load("detect/aligned", 2_000, 2),
    "localized, 10,000 tokens": Load("detect/localized", 100, 1),
}


def write_texts(path: Path, tokenizer: TextTokenizer, tokens: int, count: int) -> None:
    """Slices of the human texts, one after the other, that are `tokens` long."""
    text = "\n\n".join(read_human_texts(HUMAN_TEXTS_PATH))
    offsets = tokenizer.encode_with_offsets(text).offsets
    starts = [i * tokens % (len(offsets) - tokens) for i in range(count)]
    slices = [text[offsets[start][0] : offsets[start + tokens - 1][1]] for start in starts]
    path.write_text("".join(json.dumps({"text": part}) + "\n" for part in slices), encoding="utf-8")


@contextmanager
def serving(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
    changed: str = "",
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A detection service over the key store in `folder`, ready: its port and its process.

    Args:
        changed: statements that run before, and change what is a constant in production.
    """
    port = free_port()
    program = f"from ttmark.services.cli.main import app\n{changed}\napp()"
    command = [*prefix, sys.executable, "-c", program, "serve", "detect"]
    with running(command, port, service_environment(folder, port) | (settings or {})) as process:
        yield port, process


def service_environment(folder: Path, port: int) -> dict[str, str]:
    """The settings of a detection service over the key store in `folder`."""
    return os.environ | {
        "TTMARK_HOST": "127.0.0.1",
        "TTMARK_DETECT_PORT": str(port),
        "TTMARK_TOKENIZERS": str(DEMO_MODEL_PATH),
        "TTMARK_STORE_URL": f"sqlite:///{folder / 'keys.db'}",
        "TTMARK_KEK_FILE": str(folder / "kek"),
        "TTMARK_LEDGER_FILE": "none",
        # Counted as in production; one token sends it all here.
        "TTMARK_REQUESTS_PER_MINUTE": "1000000",
    }


@contextmanager
def running(
    command: list[str], port: int, environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A service as a process of its own, ready."""
    started = time.perf_counter()
    log = tempfile.TemporaryFile()  # noqa: SIM115 - what is logged is written as in production, and not shown
    process = subprocess.Popen(command, env=environment, stderr=log)
    try:
        while not answers(f"http://127.0.0.1:{port}/readyz"):
            if process.poll() is not None:
                raise RuntimeError("the service ended")
            time.sleep(0.02)
        print(json.dumps({"start_seconds": round(time.perf_counter() - started, 2)}), flush=True)
        yield process
    finally:
        process.terminate()
        process.wait(30)
        log.close()


async def sent(load: Load, addresses: list[list[str]], bodies: list[bytes]) -> tuple[np.ndarray, int, float]:
    """Latencies in seconds, number of failures, and the time from first to last.

    Counted is from the moment at which a request was due, so that a service that falls behind does not look
    fast.
    """
    latencies: list[float] = []
    failures = 0
    queue: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue(maxsize=0 if load.rate else 1)

    async def connection(host: str, port: str) -> None:
        nonlocal failures
        reader, writer = await asyncio.open_connection(host, int(port))
        while (item := await queue.get()) is not None:
            due, body = item
            writer.write(body)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            latencies.append(time.perf_counter() - due)
            failures += not head.startswith(b"HTTP/1.1 200")
        writer.close()

    places = (addresses[number % len(addresses)] for number in range(load.connections))
    tasks = [asyncio.create_task(connection(*place)) for place in places]
    started = time.perf_counter()
    for number in range(load.requests):
        due = started + number / load.rate if load.rate else 0.0
        await asyncio.sleep(max(0.0, due - time.perf_counter()) if due else 0.0)
        await queue.put((due or time.perf_counter(), bodies[number % len(bodies)]))
    for _ in tasks:
        await queue.put(None)
    await asyncio.gather(*tasks)
    return np.array(latencies), failures, time.perf_counter() - started


def request_bytes(route: str, token: str, text: str) -> bytes:
    """A whole HTTP request."""
    content = json.dumps({"inputs": [{"text": text}]}).encode()
    head = (
        f"POST /v1/{route} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def report(load: Load, urls: list[str], token: str, texts: str, pids: list[int]) -> dict[str, object]:
    """What became of the load, and the CPU time that the service's processes spent for each request."""

    def spent() -> float:
        return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)

    lines = Path(texts).read_text(encoding="utf-8").splitlines()
    bodies = [request_bytes(load.route, token, json.loads(line)["text"]) for line in lines]
    before, addresses = spent(), [url.removeprefix("http://").split(":") for url in urls]
    latencies, failures, seconds = asyncio.run(sent(load, addresses, bodies))
    p50, p90, p99 = np.quantile(latencies, [0.5, 0.9, 0.99]) * 1000
    return {
        "route": load.route,
        "requests": len(latencies),
        "failures": failures,
        "requests_per_second": round(len(latencies) / seconds, 1),
        "p50_ms": round(float(p50), 2),
        "p90_ms": round(float(p90), 2),
        "p99_ms": round(float(p99), 2),
        "cpu_ms_per_request": round((spent() - before) / len(latencies) * 1000, 3),
    }


def put(prefix: list[str], load: Load, *where: object) -> dict[str, object]:
    """The `report` of a process of its own."""
    command = [*prefix, sys.executable, __file__, "--put", json.dumps([asdict(load), *where])]
    found: dict[str, object] = json.loads(subprocess.check_output(command))
    return found


def floor(folder: Path, priority: list[str], tokenizer: TextTokenizer) -> dict[str, object]:
    """CPU time in milliseconds of the framework alone for a request, and of the tokenizer for its text."""
    port = free_port()
    command = [*priority, sys.executable, "-c", BARE, str(port)]
    with running(command, port) as process:
        texts, load = folder / "400.jsonl", Load(requests=2_000, connections=2)
        found = put(priority, load, [f"http://127.0.0.1:{port}"], "none", str(texts), [process.pid])
    parts = [json.loads(line)["text"] for line in texts.read_text(encoding="utf-8").splitlines()]
    for _ in range(2):  # its own cache is warm the second time
        began = time.process_time()
        for part in parts:
            tokenizer.backend.encode(part, add_special_tokens=False)
        spent = (time.process_time() - began) / len(parts)
    return {"bare_route_cpu_ms": found["cpu_ms_per_request"], "tokenizer_cpu_ms": round(spent * 1000, 3)}


def main() -> None:
    """Starts, sends, prints."""
    parser = argparse.ArgumentParser(description="Figures of the detection service over HTTP.")
    parser.add_argument("--with", dest="priority", default="")
    parser.add_argument("--only", default="", help="loads whose name holds this")
    parser.add_argument("--put", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.put:
        load, *where = json.loads(options.put)
        print(json.dumps(report(Load(**load), *where)))
        return
    priority = shlex.split(options.priority)
    tokenizer = TextTokenizer.load(DEMO_MODEL_PATH)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        fields = profile_fields(tokenizer_fingerprint=tokenizer.fingerprint)
        token = asyncio.run(provision(folder, **fields))["small"]
        write_texts(folder / "400.jsonl", tokenizer, 400, 500)
        write_texts(folder / "10000.jsonl", tokenizer, 10_000, 20)
        print(json.dumps({"floor": floor(folder, priority, tokenizer)}), flush=True)
        replicas = [stack.enter_context(serving(folder, prefix=priority)) for _ in range(2)]
        urls = [f"http://127.0.0.1:{port}" for port, _ in replicas]
        for url in urls:
            httpx.get(f"{url}/v1/keys", headers={"Authorization": f"Bearer {token}"}).raise_for_status()
        pids = [process.pid for _, process in replicas]
        for name, load in LOADS.items():
            if options.only in name:
                texts = folder / ("10000.jsonl" if load.route == "detect/localized" else "400.jsonl")
                found = put(priority, load, urls, token, str(texts), pids)
                print(json.dumps({"load": name, **found}), flush=True)


if __name__ == "__main__":
    main()
