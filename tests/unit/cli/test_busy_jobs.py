"""`ttmark jobs submit` to a service that is busy: it waits in sight, and says what to do when it does not."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ttmark.services.cli.main import app

JOB = {"id": "a" * 32, "status": "queued", "mode": "combined", "documents": 1, "answered": 0, "failed": 0}
JOB |= {"created_at": 1.0, "expires_at": 2.0}
MINUTE = "The access token's limit of documents per minute is reached."


class Service(HTTPServer):
    """Refuses so often with 429, then takes the job."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.refusals = 0
        self.retry_after = "1"
        self.seen: list[dict[str, Any]] = []


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append({"key": self.headers["Idempotency-Key"], "body": json.loads(content)})
        busy = len(self.server.seen) <= self.server.refusals
        answer = json.dumps({"title": "Too many", "detail": MINUTE} if busy else JOB).encode()
        self.send_response(429 if busy else 202)
        if busy:
            self.send_header("Retry-After", self.server.retry_after)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("some text")


def submit(service: Service, *options: str) -> Result:
    url = f"http://127.0.0.1:{service.server_port}"
    return CliRunner().invoke(app, ["jobs", "submit", "a.txt", "--url", url, "--token", "t", *options])


def test_a_busy_service_is_waited_for_with_a_line_for_each_wait(service: Service) -> None:
    service.refusals = 2
    result = submit(service)
    assert (result.exit_code, result.stdout) == (0, JOB["id"] + "\n")
    reason = MINUTE.removesuffix(".")
    assert result.stderr == f"ttmark: {reason}; trying again in 1 s\n" * 2
    assert len({one["key"] for one in service.seen}) == 1


@pytest.mark.parametrize(("options", "wait"), [((), 300), (("--wait", "20"), 20), (("--wait", "0"), 0)])
def test_a_wait_that_is_too_long_says_how_long_and_what_to_do(
    service: Service, options: tuple[str, ...], wait: int
) -> None:
    service.refusals, service.retry_after = 9, "3600"
    result = submit(service, *options)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"ttmark: {MINUTE} The service can be asked again in 3600 s, and --wait is {wait}: give it more, or "
        "send fewer documents\n"
    )
    assert len(service.seen) == 1


def test_the_same_command_with_the_same_key_sends_it(service: Service) -> None:
    for _ in range(2):
        assert submit(service, "--idempotency-key", "nightly-7").exit_code == 0
    assert [one["key"] for one in service.seen] == ["nightly-7"] * 2
    assert submit(service).exit_code == 0
    assert service.seen[2]["key"] not in (None, "nightly-7")


def test_a_wait_below_nothing_is_bad_usage(service: Service) -> None:
    assert submit(service, "--wait", "-1").exit_code == 2
