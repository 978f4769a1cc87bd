"""Load on a running detection service, from a process of its own.

    python tests/integration/detect/http_load.py --url http://127.0.0.1:8001 --token TOKEN --texts texts.jsonl

Sends requests at a fixed rate over kept-alive connections and counts from the moment at which one was due, so
that a service that falls behind does not look fast. Without --rate it sends as fast as the connections allow.
Also prints the CPU time that the service's processes (--pid) spent for each request.
"""

import argparse
import asyncio
import json
import time
from pathlib import Path

import numpy as np
import psutil


async def run(options: argparse.Namespace, bodies: list[bytes]) -> tuple[np.ndarray, int, float]:
    """Latencies in seconds, number of failures, and the time from first to last."""
    addresses = [url.removeprefix("http://").split(":") for url in options.url.split(",")]
    latencies: list[float] = []
    failures = 0
    queue: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue(maxsize=0 if options.rate else 1)

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

    tasks = [
        asyncio.create_task(connection(*addresses[number % len(addresses)]))
        for number in range(options.connections)
    ]
    started = time.perf_counter()
    for number in range(options.requests):
        if options.rate:
            due = started + number / options.rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
        else:
            due = 0.0
        await queue.put((due or time.perf_counter(), bodies[number % len(bodies)]))
    for _ in tasks:
        await queue.put(None)
    await asyncio.gather(*tasks)
    return np.array(latencies), failures, time.perf_counter() - started


def request_bytes(options: argparse.Namespace, text: str) -> bytes:
    """A whole HTTP request."""
    body = {"inputs": [{"text": text}], "fpr": 1e-5}
    if options.keys:
        body["keys"] = options.keys.split(",")
    content = json.dumps(body).encode()
    head = [
        f"POST /v1/detect/{options.mode} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {options.token}",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + content


def cpu_seconds(pids: list[int]) -> float:
    """CPU time of processes so far."""
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


def main() -> None:
    """Reads the options, sends the requests, prints one JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", default="http://127.0.0.1:8001", help="several replicas: with commas")
    parser.add_argument("--token", required=True)
    parser.add_argument("--texts", type=Path, required=True, help="JSONL with `text`")
    parser.add_argument("--mode", default="direct")
    parser.add_argument("--keys", help="key ids, separated by commas; default: all")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--rate", type=float, help="requests per second; default: as fast as possible")
    parser.add_argument("--pid", type=int, nargs="*", default=[], help="the service's, for its CPU time")
    options = parser.parse_args()
    lines = options.texts.read_text(encoding="utf-8").splitlines()
    bodies = [request_bytes(options, json.loads(line)["text"]) for line in lines]
    before = cpu_seconds(options.pid)
    latencies, failures, seconds = asyncio.run(run(options, bodies))
    spent = cpu_seconds(options.pid) - before
    quantiles = np.quantile(latencies, [0.5, 0.9, 0.99]) * 1000
    report = {
        "mode": options.mode,
        "requests": len(latencies),
        "failures": failures,
        "requests_per_second": round(len(latencies) / seconds, 1),
        "p50_ms": round(float(quantiles[0]), 2),
        "p90_ms": round(float(quantiles[1]), 2),
        "p99_ms": round(float(quantiles[2]), 2),
        "cpu_ms_per_request": round(spent / len(latencies) * 1000, 3),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
