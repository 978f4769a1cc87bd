"""The health check of the images."""

import subprocess
import sys
import time

from tests.harness.played_server import played
from tests.harness.raw_server import endless, talking
from ttmark.services.healthcheck import answers


def test_only_an_answer_of_2xx_is_healthy() -> None:
    with played(lambda path, _: (int(path.strip("/")), b"")) as address:
        asked = (200, 204, 301, 401, 503)
        assert [status for status in asked if answers(f"{address}/{status}")] == [200, 204]
    assert not answers("http://127.0.0.1:9/readyz")


def test_who_drips_is_not_waited_for() -> None:
    for drip in (endless(b"", b"H", 0.3), endless(b"HTTP/1.1 20", b"", 0.3)):
        with talking(drip) as host:
            began = time.monotonic()
            assert not answers(f"http://{host}/readyz")
            assert time.monotonic() - began < 4


def test_a_check_starts_without_the_http_client_that_the_services_use() -> None:
    code = "import sys, ttmark.services.healthcheck; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
