"""`ttmark ask FILE ADDRESS...` from its arguments to its exit code, with deployments that this test plays."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from tests.harness.played_server import played
from tests.harness.raw_server import HEAD, endless, talking
from tests.unit.cli.conftest import Run
from ttmark.detect_service.public import DOCUMENT_PATH, PublicTier
from ttmark.services.cli import ask as command
from ttmark.services.cli.main import app
from ttmark.shared.limits.public_allowance import PublicBudget
from ttmark.shared.schemas.detection import Message
from ttmark.shared.schemas.public import PublicAnswer, TextProvenance

HOME, OTHER, GONE = "https://home.example", "https://other.example", "https://gone.example"
asked: list[httpx.Request] = []


def promises(rate: float) -> TextProvenance:
    return PublicTier(rate, None, PublicBudget.of(0, 0.1), True, None).described(
        None, verifies_manifests=False
    )


def answer(request: httpx.Request) -> httpx.Response:
    """`home` finds what says so, `other` wants a token, `gone` is not there."""
    asked.append(request)
    host = request.url.host
    if host == "gone.example":
        raise httpx.ConnectError("no such host")
    if request.url.path == DOCUMENT_PATH:
        return httpx.Response(200, json=promises(1e-5 if host == "home.example" else 1e-3).model_dump())
    if host == "other.example" and request.headers.get("Authorization") != "Bearer secret":
        return httpx.Response(401, json={"title": "x", "detail": "There is no access token."})
    text = json.loads(request.content)["text"]
    found = host == "home.example" and "marked" in text
    words = Message(headline="A\x1b[31m headline", explanation="Why", caution="Care")
    said = PublicAnswer(verdict="found" if found else "not_found", message=words)
    return httpx.Response(200, json=said.model_dump(mode="json"))


@pytest.fixture
def run(run_against: Callable[..., Run]) -> Run:
    asked.clear()
    run = run_against(command, answer, "ask")
    Path("text.txt").write_text("a marked text")
    Path("plain.txt").write_text("a text")
    Path("token").write_text("secret\n")
    return run


def test_each_says_what_it_found_and_what_it_promises(run: Run) -> None:
    said = run("text.txt", HOME, OTHER, "--token", "other.example=token")
    assert said.exit_code == 0
    assert "at most 1e-05" in said.stdout
    assert "at most 0.001" in said.stdout
    assert "As they promise, of texts without any of these marks at most 0.001 are found" in said.stdout
    assert "\x1b" not in said.stdout  # a stranger's words do not reach the terminal as they are
    lines = run("text.txt", HOME, OTHER, "--token", "other.example=token", "--json").stdout.splitlines()
    verdicts = {
        line["address"]: (line["verdict"], line["false_alarm_rate"]) for line in map(json.loads, lines)
    }
    assert verdicts == {HOME: ("found", 1e-5), OTHER: ("not_found", 1e-3)}


def test_who_does_not_answer_is_named_and_the_others_are_shown(run: Run) -> None:
    said = run("text.txt", HOME, OTHER, GONE)
    assert said.exit_code == 1
    assert "found" in said.stdout
    assert OTHER in said.stderr
    assert GONE in said.stderr
    assert "As they promise" not in said.stdout


def test_who_drips_or_never_ends_costs_nobody_the_answer_of_another(tmp_path: Path) -> None:
    """The time is that of the whole question to each, and none of them fills the memory."""
    said = PublicAnswer(verdict="found", message=Message(headline="Ours", explanation="Why", caution="Care"))

    def good(path: str, _: bytes) -> tuple[int, bytes]:
        return 200, (promises(1e-5) if path == DOCUMENT_PATH else said).model_dump_json().encode()

    (tmp_path / "text.txt").write_text("a text")
    chunked, mebibyte = HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"100000\r\n" + b" " * 2**20 + b"\r\n"
    with (
        talking(endless(chunked, b"1\r\n \r\n", 0.05)) as drips,
        talking(endless(chunked, mebibyte)) as floods,
        played(good) as home,
    ):
        began = time.monotonic()
        asked = [f"http://{drips}", f"http://{floods}", home]
        told = CliRunner().invoke(app, ["ask", str(tmp_path / "text.txt"), *asked, "--timeout", "2"])
    assert time.monotonic() - began < 10
    assert told.exit_code == 1
    assert f"{home}: Ours. Why" in told.stdout
    assert f"http://{drips}: no whole answer within 2 s" in told.stderr
    assert f"http://{floods}: http://{floods}: its answer has more than 1048576 bytes" in told.stderr


SILENT_NAMES = """
import socket, time
socket.getaddrinfo = lambda *_, **__: time.sleep(60)
from ttmark.services.cli.main import app
app(["ask", "text.txt", "https://a.example", "--timeout", "1"])
"""


def test_a_name_server_that_is_silent_holds_up_neither_the_answer_nor_the_end(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a text")
    command = [sys.executable, "-c", SILENT_NAMES]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=40, check=False)
    assert (said.returncode, said.stderr) == (1, "ttmark: https://a.example: no whole answer within 1 s\n")


@pytest.mark.parametrize("rate", ["-5", "0", "NaN", "Infinity", "1e300", "1.5", '"1e-5"', "[1]"])
def test_a_promise_that_is_no_rate_is_refused_in_words(run_against, rate: str) -> None:
    document = promises(0.5).model_dump_json().replace('"false_alarm_rate":0.5', f'"false_alarm_rate":{rate}')
    run = run_against(command, lambda _: httpx.Response(200, text=document), "ask")
    Path("text.txt").write_text("a text")
    said = run("text.txt", HOME)
    assert (said.exit_code, said.stdout) == (1, "")
    assert "answered what no TTMark service answers: false_alarm_rate: Input should be" in said.stderr


def test_a_token_goes_to_its_host_alone(run: Run) -> None:
    run("text.txt", HOME, OTHER, "--token", "other.example=token")
    assert {request.url.host for request in asked if "Authorization" in request.headers} == {"other.example"}
    refused = run("text.txt", HOME, "--token", "other.example=token")
    assert refused.exit_code == 2
    assert "other.example" in refused.output


@pytest.mark.parametrize(("file", "code"), [("text.txt", 3), ("plain.txt", 0)])
def test_the_exit_code_tells_of_a_finding(run: Run, file: str, code: int) -> None:
    assert run(file, HOME, "--fail-on-found").exit_code == code


@pytest.mark.parametrize(
    "arguments", [("text.txt",), ("text.txt", "home"), ("text.txt", HOME, "--token", "x")]
)
def test_bad_usage_asks_nobody(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2
    assert asked == []


def test_what_is_no_text_is_one_line(run: Run) -> None:
    Path("picture.png").write_bytes(b"\x89PNG\xff")
    said = run("picture.png", HOME)
    assert said.exit_code == 1
    assert said.stderr.strip().count("\n") == 0
    assert asked == []
