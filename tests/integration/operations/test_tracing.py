"""Traces of a running service reach a collector, and its log names them."""

import json
from pathlib import Path

import httpx

from tests.harness.observe.services import Bed
from tests.harness.played_server import played

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


def test_a_requests_span_joins_the_callers_trace_and_so_does_the_log(tmp_path: Path, model: str) -> None:
    received: list[tuple[str, bytes]] = []

    def collect(path: str, spans: bytes) -> tuple[int, bytes]:
        received.append((path, spans))
        return 200, b""

    secret = "a text that must not be in a trace"
    with played(collect) as collector:
        settings = {"TTMARK_TRACES_ENDPOINT": f"{collector}/v1/traces"}
        bed = Bed(tmp_path, model=model, settings=settings)
        bed.start("detect")
        try:
            bed.wait_until_ready("detect")
            headers = {
                "Authorization": f"Bearer {bed.setup.token}",
                "traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01",
            }
            body = {"inputs": [{"text": secret}]}
            url = f"{bed.url('detect')}/v1/detect/direct"
            assert httpx.post(url, json=body, headers=headers, timeout=30).status_code == 200
        finally:
            assert bed.stop("detect") == 0  # and flushes
    path, spans = received[0]
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
