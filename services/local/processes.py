"""Both services as child processes on loopback."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from ttmark.services.healthcheck import answers
from ttmark.services.local.provision import LocalSetup
from ttmark.services.startup import StartupError, listen

HOST = "127.0.0.1"
START_SECONDS = 300.0
STOP_SECONDS = 40.0
GIVEN = {
    "TTMARK_HOST": HOST,
    "TTMARK_MODEL": "{setup.model}",
    "TTMARK_STATE": "{setup.state}",
    "TTMARK_TOKENIZERS": "",  # all that the state folder holds
    "TTMARK_STORE_URL": "{setup.store_url}",
    "TTMARK_STORE_URL_FILE": "",
    "TTMARK_KEK": "",
    "TTMARK_KEK_FILE": "{setup.kek_file}",
    "TTMARK_PLAYGROUND": "true",
    "TTMARK_CONSOLE_URL": "{services.detect_url}",
    "TTMARK_CASE_KEY_FILE": "{setup.case_key_file}",
    "TTMARK_DEFAULT_KEY": "{setup.key_id}",
    "TTMARK_GEN_PORT": "{ports[gen]}",
    "TTMARK_DETECT_PORT": "{ports[detect]}",
    "TTMARK_READER_URL": "{services.gen_url}",
    "TTMARK_READER_TOKENIZER": "",
    "TTMARK_READER_MODEL": "{setup.model_id}",
    "TTMARK_READER_TOKEN": "",
    "TTMARK_READER_TOKEN_FILE": "{setup.token_file}",
}
"""Variables that both services are given, whatever they are in the environment."""
_NAMES = {"gen": "the generation service", "detect": "the detection service"}


def check_ports(ports: Mapping[str, int]) -> None:
    """Says of each service's port that it is free.

    Raises:
        StartupError: it is not.
    """
    for name, port in ports.items():
        listen(HOST, port, f"--{name}-port").close()


class LocalServices:
    """Starts `ttmark serve gen` and `ttmark serve detect`, and stops both when the block is left.

    When this process is killed they stop by themselves: see `child`.
    """

    def __init__(self, setup: LocalSetup, gen_port: int, detect_port: int) -> None:
        self.setup = setup
        self.gen_url = f"http://{HOST}:{gen_port}"
        self.detect_url = f"http://{HOST}:{detect_port}"
        self._ports = {"gen": gen_port, "detect": detect_port}
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        check_ports(self._ports)
        try:
            for name in self._ports:
                self._children[name] = self._start(name)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def log_file(self, name: str) -> Path:
        return self.setup.state / f"{name}.log"

    def wait_until_ready(self) -> None:
        """Returns when both services answer /readyz with 200.

        Raises:
            StartupError: one of them ended, or is not ready within START_SECONDS.
        """
        deadline = time.monotonic() + START_SECONDS
        for name, url in (("gen", self.gen_url), ("detect", self.detect_url)):
            while not answers(f"{url}/readyz"):
                self._raise_if_one_ended()
                if time.monotonic() > deadline:
                    raise StartupError(
                        f"{_NAMES[name]} is not ready after {START_SECONDS:.0f} s; see {self.log_file(name)}"
                    )
                time.sleep(0.1)

    def wait(self) -> None:
        """Returns never while both services run.

        Raises:
            StartupError: one of them ended by itself.
        """
        while True:
            self._raise_if_one_ended()
            time.sleep(0.5)

    def _raise_if_one_ended(self) -> None:
        for name, child in self._children.items():
            if child.poll() is not None:
                lines = self.log_file(name).read_text(errors="replace").splitlines()
                said = [line for line in lines if line.strip()] or [f"it ended with code {child.returncode}"]
                last, log = said[-1].removeprefix("ttmark: "), self.log_file(name)
                raise StartupError(f"{_NAMES[name]} ended: {last} (its log is {log})")

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        parts = {"setup": self.setup, "services": self, "ports": self._ports}
        given = {name: text.format_map(parts) for name, text in GIVEN.items()}
        log_file = os.open(self.log_file(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.fchmod(log_file, 0o600)  # of an earlier start's, too
        with os.fdopen(log_file, "wb") as log:
            # A session of their own: Ctrl-C reaches this process alone, which stops them in order.
            return subprocess.Popen(
                [sys.executable, "-m", "ttmark.services.cli.child", "serve", name],
                env=os.environ | given,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _stop(self) -> None:
        for child in self._children.values():
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
        for child in self._children.values():
            try:
                child.communicate(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
