"""Both services and the live check as processes on loopback."""

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import httpx

from ttmark.services.local.provision import LocalSetup, provision

START_SECONDS = 180.0
STOP_SECONDS = 120.0
# To read the certificates of the world takes 80 ms of a processor, and a service that starts is asked often.
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

_OFTEN = """
from ttmark.services.features.canary import canary
from ttmark.services.cli.main import app

canary.SECONDS, canary.TOKENS = 3.0, 100
app()
"""


class Bed:
    """Starts `ttmark serve gen|detect|canary` on free ports and stops them when the block is left.

    The launcher is a command that becomes the one behind it; `often`: the live check runs every three
    seconds.
    """

    def __init__(
        self,
        folder: Path,
        *,
        model: str = "demo",
        store_url: str | None = None,
        settings: Mapping[str, str] | None = None,
        launcher: Sequence[str] = (),
        often: bool = False,
    ) -> None:
        self.folder = folder
        self.setup: LocalSetup = provision(model, store_url, folder / "state")
        self.ports = {name: free_port() for name in ("gen", "detect", "canary")}
        self.folder.mkdir(parents=True, exist_ok=True)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._settings = dict(settings or {})
        self._launcher = launcher
        self._often = often

    @property
    def targets(self) -> dict[str, list[str]]:
        """What Prometheus scrapes, by job."""
        return {f"ttmark-{name}": [f"127.0.0.1:{self.ports[name]}"] for name in ("gen", "detect", "canary")}

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.ports[name]}"

    def __enter__(self) -> Self:
        try:
            for name in ("gen", "detect"):
                self.start(name)
            for name in ("gen", "detect"):
                self.wait_until_ready(name)
            self.start("canary")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()

    def start(self, name: str) -> None:
        """Starts one process, `gen`, `detect`, `canary`, or a further instance such as `gen-2`."""
        service = name.split("-")[0]
        self.ports.setdefault(name, free_port())
        environment = os.environ | {
            **variables(self.setup),
            "TTMARK_HOST": "127.0.0.1",
            "TTMARK_TOKEN_FILE": str(self.setup.token_file),
            "TTMARK_GEN_URL": self.url("gen"),
            "TTMARK_DETECT_URL": self.url("detect"),
            f"TTMARK_{service.upper()}_PORT": str(self.ports[name]),
            **self._settings,
        }
        program = self.program(service)
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*self._launcher, sys.executable, *program, "serve", service],
                cwd=Path(__file__).parents[3],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def program(self, service: str) -> list[str]:
        return ["-c", _OFTEN] if self._often and service == "canary" else ["-m", "ttmark.services"]

    def stop(self, name: str) -> int:
        """Sends SIGTERM, waits for the end and gives the exit code."""
        self.processes[name].terminate()
        code = self.processes[name].wait(STOP_SECONDS)
        del self.processes[name]
        return code

    def wait_until_ready(self, name: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not answers(f"{self.url(name)}/readyz"):
            if self.processes[name].poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / f"{name}.log").read_text()[-4000:])
            time.sleep(0.1)


def variables(setup: LocalSetup) -> dict[str, str]:
    """What a service is told of a setup."""
    return {
        "TTMARK_STATE": str(setup.state),
        "TTMARK_MODEL": setup.model,
        "TTMARK_TOKENIZERS": str(setup.tokenizer_folder),
        "TTMARK_STORE_URL": setup.store_url,
        "TTMARK_KEK_FILE": str(setup.kek_file),
        "TTMARK_DEFAULT_KEY": setup.key_id,
    }


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2, verify=_NO_TLS).is_success
    except httpx.HTTPError:
        return False
