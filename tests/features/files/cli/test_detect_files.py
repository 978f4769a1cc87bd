"""`ttmark detect FILE...` from its arguments to its exit code, with a service that this test plays."""

import asyncio
import json
import os
import re
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from tests.unit.services.cli.conftest import Run
from ttmark.services.cli import terminal
from ttmark.shared.client import AsyncClient
from ttmark.shared.http.form_body import parse_form

# Its name is a function's, too.
command = import_module("ttmark.detect_service.features.files.commands.detect")

MARKED = "marked"
TOO_LONG = "too long"
FAILING = "failing"
WHY = {"code": "internal_error", "message": "An error on our side."}


class Played:
    """Finds `marked`, refuses files that are `too long` as the service does, and keeps what files hold."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.busy = 1

    def answer(self, request: httpx.Request) -> httpx.Response:
        form = parse_form(request.headers["content-type"], request.content)
        assert json.loads(form["question"]["content"])["mode"] == "combined"
        content = form["file"]["content"].decode()
        self.requests.append(content)
        if content.startswith("wait ") and self.busy:
            self.busy -= 1
            answer = {"title": "Too many", "detail": "The token's limit is reached."}
            return httpx.Response(429, json=answer, headers={"Retry-After": content[5:]})
        if content == "forbidden":
            return httpx.Response(403, json={"title": "Forbidden", "detail": "The token lacks a scope."})
        if content == "lost":
            raise httpx.ReadError("Connection reset by peer")
        if content == "failed":
            return httpx.Response(500, json={"title": "x", "detail": "An error on our side."})
        if content == TOO_LONG:
            return httpx.Response(413, json={"title": "x", "detail": "The file is long.", "param": "file"})
        texts = content.split(" & ")
        names = [{}] if len(texts) == 1 else [{"name": text, "unread": "It has more."} for text in texts]
        shown = [{**name, "result": result_of(text)} for name, text in zip(names, texts, strict=True)]
        answer = {"created_at": 1, "results": [], "not_looked_at": [], "texts": shown, "request_id": "r"}
        return httpx.Response(200, json=answer)


def result_of(text: str) -> dict[str, object]:
    of_text = {MARKED: {"verdict": "watermarked"}, FAILING: {"verdict": "not_examined", "error": WHY}}
    return {"id": "0", "verdict": "not_detected", "tokens": 1, "hypotheses": 1, **of_text.get(text, {})}


@pytest.fixture
def service() -> Played:
    return Played()


@pytest.fixture
def run(service: Played, run_against: Callable[..., Run]) -> Run:
    return run_against(command, service.answer, "detect", "--token", "t")


def write(**texts: str) -> None:
    for name, text in texts.items():
        Path(f"{name}.txt").write_text(text)


def test_files_a_folder_and_standard_input_are_answered_in_order(run: Run) -> None:
    Path("f").mkdir()
    write(a="1")
    Path("f/b.html").write_text(MARKED)
    result = run("--json", "a.txt", "f", "-", input="typed")
    assert result.exit_code == 0
    answered = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(one["id"], one["verdict"]) for one in answered] == [
        ("a.txt", "not_detected"),
        ("f/b.html", "watermarked"),
        ("-", "not_detected"),
    ]
    assert "3 files: 2 not detected, 1 watermarked" in result.stderr


def test_a_program_gets_the_whole_of_a_long_name(run: Run) -> None:
    folder = Path(*["a-folder-of-a-long-name"] * 12)
    folder.mkdir(parents=True)
    names = [str(folder / "a.txt"), str(folder / "b.txt")]
    Path(names[0]).write_text("1")
    Path(names[1]).write_text(TOO_LONG)
    result = run("--json", *names)
    assert len(names[0]) > 256
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == names


@pytest.mark.parametrize("arguments", [["--json"], []])
def test_a_name_that_is_no_utf_8_costs_no_file_its_answer(run: Run, arguments: list[str]) -> None:
    Path("in").mkdir()
    Path("in/a.txt").write_text("one")
    for name, text in ((b"in/caf\xe9.txt", MARKED), (b"in/caf\xe8.txt", TOO_LONG)):
        Path(os.fsdecode(name)).write_text(text)
    result = run(*arguments, "in")
    assert "caf\\xe9.txt" in result.output.replace("\\\\", "\\")
    assert "caf\\xe8.txt" in result.output.replace("\\\\", "\\")
    assert "a.txt" in result.output


def test_a_bad_file_is_named_and_the_others_are_answered(run: Run, service: Played) -> None:
    write(a=TOO_LONG, b="1", c=TOO_LONG, d=MARKED, e=FAILING)
    result = run("--json", "a.txt", "b.txt", "none.txt", "c.txt", "d.txt", "e.txt")
    assert result.exit_code == 1
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["id"] for line in lines if "verdict" in line] == ["b.txt", "d.txt"]
    assert [line["id"] for line in lines if "error" in line] == ["a.txt", "none.txt", "c.txt", "e.txt"]
    assert "ttmark: none.txt: No such file or directory" in result.stderr
    assert "ttmark: c.txt: The file is long." in result.stderr
    assert "ttmark: e.txt: An error on our side." in result.stderr
    assert "6 files: 4 not examined, 1 not detected, 1 watermarked" in result.stderr


@pytest.mark.parametrize(
    ("fault", "last", "said"),
    [
        ("lost", "watermarked", "Connection reset by peer. The request may have arrived, so it was not sent"),
        ("failed", "watermarked", "An error on our side."),
        ("forbidden", None, "The token lacks a scope."),
    ],
)
def test_answers_that_came_are_not_lost_with_another(
    run: Run, service: Played, fault: str, last: str | None, said: str
) -> None:
    write(a=MARKED, b=fault, **dict.fromkeys("cdefgh", MARKED))
    result = run("--json", *(f"{name}.txt" for name in "abcdefgh"), "none.txt")
    assert result.exit_code == 1
    lines = {line["id"]: line for line in map(json.loads, result.stdout.splitlines())}
    verdicts = [lines[f"{name}.txt"].get("verdict") for name in "abcdefgh"]
    assert verdicts == ["watermarked", None, *["watermarked"] * 3, *[last] * 3]
    assert said in lines["b.txt"]["error"]
    assert last or said in lines["h.txt"]["error"]
    assert f"ttmark: b.txt: {lines['b.txt']['error']}" in result.stderr
    assert len(service.requests) == (8 if last else 5)


def test_some_files_are_asked_about_at_once_and_wait_for_each_other(
    run_against: Callable[..., Run], service: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, most = 0, []

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal now
        now += 1
        most.append(now)
        for _ in range(20):
            await asyncio.sleep(0)
        now -= 1
        return service.answer(request)

    monkeypatch.setattr(AsyncClient, "_sleep", lambda *_: asyncio.sleep(0))
    run = run_against(command, answer, "detect", "--token", "t")
    service.busy = 10  # of four files some are refused three times: for three minutes
    Path("in").mkdir()
    for number in range(12):
        Path(f"in/{number:02}.txt").write_text("wait 60" if 3 < number < 8 else MARKED)
    result = run("--json", "in")
    assert result.exit_code == 0
    assert (most[1], max(most)) == (1, 4)
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == sorted(
        map(str, Path("in").iterdir())
    )
    assert result.stderr.count("Again in 60 seconds: waiting.") == 1


def test_a_pipe_that_is_silent_for_long_delays_no_answer(
    run_against: Callable[..., Run], service: Played
) -> None:
    came, in_time = threading.Event(), []

    async def answer(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)
        if len(service.requests) == 1:
            came.set()
        return service.answer(request)

    def fill() -> None:
        in_time.append(came.wait(10))
        Path("pipe").write_text("2")

    run = run_against(command, answer, "detect", "--token", "t")
    write(a="1", b=MARKED)
    os.mkfifo("pipe")
    filling = threading.Thread(target=fill)
    filling.start()
    result = run("--json", "a.txt", "b.txt", "pipe")
    filling.join()
    assert (result.exit_code, len(result.stdout.splitlines()), in_time) == (0, 3, [True])


def test_a_long_run_says_how_far_it_is(
    run_against: Callable[..., Run], service: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 0

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal seconds
        seconds += 10
        return service.answer(request)

    run = run_against(command, answer, "detect", "--token", "t")
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + seconds))
    write(a="1", b="2")
    result = run("--json", "a.txt", "b.txt")
    first, second = result.stderr.splitlines()[:2]
    assert re.fullmatch(r"1 file, 0\.1/s, 50%, 1\d s left", first)  # it took some time besides
    assert second == "2 files, 0.1/s, 100%, 0 s left"
    assert len(result.stdout.splitlines()) == 2


def test_a_file_of_several_texts_has_a_line_for_each(run: Run) -> None:
    write(a=f"1 & {MARKED}")
    result = run("--json", "a.txt")
    answered = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(one["id"], one["verdict"]) for one in answered] == [
        ("a.txt · 1", "not_detected"),
        ("a.txt · marked", "watermarked"),
    ]
    assert "a.txt · 1: It has more." in result.stderr


def test_a_service_that_takes_no_more_is_said_at_once_and_costs_no_answer(run: Run, service: Played) -> None:
    write(a=MARKED, b="wait 10000", **dict.fromkeys("cdef", "3"))
    result = run("--json", *(f"{name}.txt" for name in "abcdef"))
    assert result.exit_code == 1
    said = "ttmark: The token's limit is reached. Again in 3 hours: the rest is not examined."
    assert result.stderr.splitlines()[0] == said
    examined = {line["id"] for line in map(json.loads, result.stdout.splitlines()) if "verdict" in line}
    assert examined == {"a.txt", "c.txt", "d.txt", "e.txt"}  # three were asked about with the one refused
    for name in ("b.txt", "f.txt"):
        assert f"ttmark: {name}: the service takes no more for 3 hours" in result.stderr
    service.busy = 1
    write(b="wait 1")
    result = run("b.txt")
    assert result.exit_code == 0
    assert (
        result.stderr.splitlines()[0] == "ttmark: The token's limit is reached. Again in 1 second: waiting."
    )


def test_mailboxes_and_tables_are_passed_over_in_folders_and_sent_where_they_are_named(run: Run) -> None:
    Path("in").mkdir()
    for name in ("in/a.csv", "in/b.mbox", "in/c.txt"):
        Path(name).write_text("text")
    result = run("--json", "in", "in/a.csv")
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["in/c.txt", "in/a.csv"]
    assert "passed over in folders: 2 of other kinds" in result.stderr


def test_what_is_no_files_fault_ends_the_command_in_one_line(run: Run, service: Played) -> None:
    write(a="forbidden", b="1")
    result = run("a.txt", "b.txt")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "ttmark: The token lacks a scope.\n"
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("files", "plain", "fail_on_found"),
    [(["b.txt"], 0, 0), (["a.txt"], 0, 3), (["a.txt", "none.txt"], 1, 3), (["b.txt", "none.txt"], 1, 1)],
)
def test_exit_codes_say_what_happened(run: Run, files: list[str], plain: int, fail_on_found: int) -> None:
    write(a=MARKED, b="1")
    assert run(*files).exit_code == plain
    assert run("--fail-on-found", *files).exit_code == fail_on_found


@pytest.mark.parametrize(
    "arguments", [[], ["-", "-"], ["a.txt", "--bulk", "b.jsonl"], ["--mode", "odd", "-"]]
)
def test_bad_usage_is_2(run: Run, arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2
