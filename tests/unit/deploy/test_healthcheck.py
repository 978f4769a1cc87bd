"""The health check of the images."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ttmark.services.healthcheck import answers


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(int(self.path.strip("/")))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_only_an_answer_of_2xx_is_healthy(address: str) -> None:
    asked = (200, 204, 301, 401, 503)
    assert [status for status in asked if answers(f"{address}/{status}")] == [200, 204]
    assert not answers("http://127.0.0.1:9/readyz")


def test_a_check_starts_without_the_http_client_that_the_services_use() -> None:
    code = "import sys, ttmark.services.healthcheck; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
