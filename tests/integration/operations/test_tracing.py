"""Traces of a running service reach a collector, and its log names them."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest

from tests.harness.observe.services import Bed

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


class Collector(HTTPServer):
    """Keeps what is posted to it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[tuple[str, bytes]] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/traces"


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_request(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


def test_a_requests_span_joins_the_callers_trace_and_so_does_the_log(
    tmp_path: Path, model: str, collector: Collector
) -> None:
    secret = "a text that must not be in a trace"
    bed = Bed(tmp_path, model=model, settings={"TTMARK_TRACES_ENDPOINT": collector.endpoint})
    bed.start("detect")
    try:
        bed.wait_until_ready("detect")
        headers = {
            "Authorization": f"Bearer {bed.setup.token}",
            "traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01",
        }
        body = {"inputs": [{"text": secret}]}
        answer = httpx.post(f"{bed.url('detect')}/v1/detect/direct", json=body, headers=headers, timeout=30)
        assert answer.status_code == 200
    finally:
        assert bed.stop("detect") == 0  # and flushes
    deadline = time.monotonic() + 10
    while not collector.received and time.monotonic() < deadline:
        time.sleep(0.1)
    path, spans = collector.received[0]
    assert path == "/v1/traces"
    assert bytes.fromhex(TRACE_ID) in spans
    assert b"ttmark-detect" in spans
    assert secret.encode() not in spans
    assert bed.setup.token.encode() not in spans
    lines = [json.loads(line) for line in (tmp_path / "detect.log").read_text().splitlines()]
    (access,) = [
        line for line in lines if line["event"] == "request" and line["route"] == "/v1/detect/direct"
    ]
    assert access["trace_id"] == TRACE_ID
    assert access["request_id"]
