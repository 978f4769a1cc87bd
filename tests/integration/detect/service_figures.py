"""The detection service's figures in one command: start, direct, aligned and localized over HTTP.

    python tests/integration/detect/service_figures.py [--with "chrt --rr 5"]

Starts two replicas with a key of their own in a temporary folder, times them until `/readyz` says 200, and
lets `http_load.py` send the shipped human texts: 400 tokens each, for `localized` 10,000. Prints one JSON
object a line. `--with` goes before the commands of replicas and driver: a scheduling priority, where other
work shares the cores.

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
from pathlib import Path

import httpx

from tests.harness.job_tenants import provision
from tests.harness.observe.services import free_port
from ttmark.evaluation.text_files import read_human_texts
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH, HUMAN_TEXTS_PATH
from ttmark.shared.tokenization import TextTokenizer

HERE = Path(__file__).parent
LOADS = {
    "direct, as fast as 4 connections allow": ["--requests", "4000", "--connections", "4"],
    "direct, 500 requests/s offered": ["--requests", "4000", "--connections", "16", "--rate", "500"],
    "direct, 400 requests/s offered": ["--requests", "4000", "--connections", "16", "--rate", "400"],
    "direct, 300 requests/s offered": ["--requests", "4000", "--connections", "16", "--rate", "300"],
    "aligned, 2 connections": ["--mode", "aligned", "--requests", "2000", "--connections", "2"],
    "localized, 10,000 tokens": ["--mode", "localized", "--requests", "100", "--connections", "1"],
}


def write_texts(path: Path, tokenizer: TextTokenizer, tokens: int, count: int) -> None:
    """Slices of the human texts, one after the other, that are `tokens` long."""
    text = "\n\n".join(read_human_texts(HUMAN_TEXTS_PATH))
    offsets = tokenizer.encode_with_offsets(text).offsets
    starts = [i * tokens % (len(offsets) - tokens) for i in range(count)]
    slices = [text[offsets[start][0] : offsets[start + tokens - 1][1]] for start in starts]
    path.write_text("".join(json.dumps({"text": part}) + "\n" for part in slices), encoding="utf-8")


def is_ready(port: int) -> bool:
    """Whether the service there takes requests."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=2).is_success
    except httpx.HTTPError:
        return False


@contextmanager
def serving(
    folder: Path, settings: Mapping[str, str] | None = None, prefix: Sequence[str] = ()
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A detection service over the key store in `folder`, ready: its port and its process."""
    port = free_port()
    command = [*prefix, sys.executable, "-m", "ttmark.services", "serve", "detect"]
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
        # Counted as in production; one token sends it all here.
        "TTMARK_REQUESTS_PER_MINUTE": "1000000",
        "TTMARK_DOCUMENTS_PER_MINUTE": "1000000",
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
        while not is_ready(port):
            if process.poll() is not None:
                raise RuntimeError("the service ended")
            time.sleep(0.02)
        print(json.dumps({"start_seconds": round(time.perf_counter() - started, 2)}), flush=True)
        yield process
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def load(
    prefix: list[str], urls: list[str], token: str, texts: Path, pids: list[int], arguments: list[str]
) -> dict[str, object]:
    """What `http_load.py` reports."""
    command = [*prefix, sys.executable, str(HERE / "http_load.py"), "--url", ",".join(urls), "--token", token]
    command += ["--keys", "small", "--texts", str(texts), "--pid", *map(str, pids)]
    report: dict[str, object] = json.loads(subprocess.check_output([*command, *arguments]))
    return report


def floor(folder: Path, priority: list[str], tokenizer: TextTokenizer) -> dict[str, object]:
    """CPU time in milliseconds of the framework alone for a request, and of the tokenizer for its text."""
    port = free_port()
    command = [*priority, sys.executable, str(HERE / "bare_service.py"), str(port)]
    with running(command, port) as process:
        url = f"http://127.0.0.1:{port}"
        texts = folder / "400.jsonl"
        arguments = ["--requests", "2000", "--connections", "2"]
        report = load(priority, [url], "none", texts, [process.pid], arguments)
    parts = [json.loads(line)["text"] for line in texts.read_text(encoding="utf-8").splitlines()]
    for _ in range(2):  # its own cache is warm the second time
        began = time.process_time()
        for part in parts:
            tokenizer.backend.encode(part, add_special_tokens=False)
        spent = (time.process_time() - began) / len(parts)
    return {"bare_route_cpu_ms": report["cpu_ms_per_request"], "tokenizer_cpu_ms": round(spent * 1000, 3)}


def main() -> None:
    """Starts, sends, prints."""
    parser = argparse.ArgumentParser(description="Figures of the detection service over HTTP.")
    parser.add_argument("--with", dest="priority", default="")
    parser.add_argument("--only", default="", help="loads whose name holds this")
    options = parser.parse_args()
    priority = shlex.split(options.priority)
    tokenizer = TextTokenizer.load(DEMO_MODEL_PATH)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        token = asyncio.run(provision(folder))["small"]
        write_texts(folder / "400.jsonl", tokenizer, 400, 500)
        write_texts(folder / "10000.jsonl", tokenizer, 10_000, 20)
        print(json.dumps({"floor": floor(folder, priority, tokenizer)}), flush=True)
        replicas = [stack.enter_context(serving(folder, prefix=priority)) for _ in range(2)]
        urls = [f"http://127.0.0.1:{port}" for port, _ in replicas]
        for url in urls:
            httpx.get(f"{url}/v1/keys", headers={"Authorization": f"Bearer {token}"}).raise_for_status()
        for name, arguments in LOADS.items():
            if options.only not in name:
                continue
            texts = folder / ("10000.jsonl" if "localized" in arguments else "400.jsonl")
            pids = [process.pid for _, process in replicas]
            print(
                json.dumps({"load": name, **load(priority, urls, token, texts, pids, arguments)}), flush=True
            )


if __name__ == "__main__":
    main()
