"""A detection service as a process of its own."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.harness.observe.services import answers, free_port
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH


@contextmanager
def serving(
    folder: Path, settings: Mapping[str, str] | None = None, prefix: Sequence[str] = (), changed: str = ""
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A detection service over the key store in `folder`, after statements: its port and its process."""
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
    log = tempfile.TemporaryFile()  # noqa: SIM115 - what is logged is written as in production, and not shown
    process = subprocess.Popen(command, env=environment, stderr=log)
    try:
        while not answers(f"http://127.0.0.1:{port}/readyz"):
            if process.poll() is not None:
                raise RuntimeError("the service ended")
            time.sleep(0.02)
        yield process
    finally:
        process.terminate()
        process.wait(30)
        log.close()
