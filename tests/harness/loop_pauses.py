"""`python -m tests.harness.loop_pauses FILE`: how long each route's worst body holds a service's event loop.

A task on the loop of each service, a process of its own, wakes every millisecond and writes down the longest
that it had to wait, at most the processor's time of the process: others on the machine are not counted.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.harness.forms import FORM, PATHS, form
from tests.harness.observe.services import Bed
from tests.harness.worst_bodies import WORST_BODIES

_BEAT = """
import asyncio, pathlib, sys, time
from ttmark.services.composition import server
from ttmark.services.cli.main import app

FILE, TICK = pathlib.Path(sys.argv.pop(1)), 0.001

class Watched(server.uvicorn.Server):
    async def startup(self, *given, **named):
        await super().startup(*given, **named)
        self.beat = asyncio.create_task(beat())

async def beat():
    longest = 0.0
    while True:
        began, used = time.perf_counter(), time.process_time()
        await asyncio.sleep(TICK)
        waited = min(time.perf_counter() - began - TICK, time.process_time() - used)
        if not FILE.exists():
            longest = 0.0
        if waited > longest or not longest:
            longest = waited
            FILE.write_text(str(longest))

server.uvicorn.Server = Watched
app()
"""
T = TypeVar("T")
_SETTINGS = dict.fromkeys(("TTMARK_REQUESTS_PER_MINUTE", "TTMARK_TOKENS_PER_MINUTE"), "1000000000")


class WatchedBed(Bed):
    """Both services, with a watch on their loops."""

    def __init__(self, folder: Path, launcher: list[str] | None = None) -> None:
        super().__init__(folder, settings=_SETTINGS, launcher=launcher or [])

    def program(self, service: str) -> list[str]:
        watched = ["-c", _BEAT, str(self.folder / f"{service}.pause")]
        return super().program(service) if service == "canary" else watched

    def longest_pause(self, service: str, work: Callable[[], T]) -> tuple[T, float]:
        """What the work gives, and the longest pause of the service's loop meanwhile, in milliseconds."""
        file = self.folder / f"{service}.pause"
        file.unlink(missing_ok=True)
        while not file.exists():
            time.sleep(0.01)
        result = work()
        time.sleep(0.1)
        return result, 1000 * float(file.read_text())


_MIB = 2**20
_BODY, _JOB = 8 * _MIB - 4096, 16 * _MIB - 4096
_MANY = 9_900
_MODEL = {"model": "demo"}
_ASKED = {"role": "user", "content": "a"}
_IDS = [300] * 400
_PART = {"type": "text", "text": "a"}
_DOCUMENT, _TEXT = {"token_ids": _IDS}, {"text": "word " * 320}
_LONG = "word " * (_BODY // 5 - 30)


def _table(rows: int) -> bytes:
    return form(b"id,text\n" + b"".join(b"%d,a\n" % number for number in range(rows)), "a.csv")


def _chat(**fields: Any) -> dict[str, Any]:
    return {**_MODEL, "messages": [_ASKED], "max_tokens": 1, **fields}


def _schema(schema: Any) -> dict[str, Any]:
    return _chat(response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": schema}})


def _tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "a" * 60_000}}


_WORST = {name: lambda make=make: make(_BODY) for name, make in WORST_BODIES.items()}
BODIES: dict[str, dict[str, Callable[[], Any]]] = {
    "/v1/detect": {
        **_WORST,
        "256 documents of token ids": lambda: {"inputs": [_DOCUMENT] * 256},
        "256 texts": lambda: {"inputs": [_TEXT] * 256},
        "wrong ids": lambda: {"inputs": [{"token_ids": [-1] * (_BODY // 4)}]},
        "many messages": lambda: {"inputs": [{"text": "a"}], "messages": [_ASKED] * 8_000},
    },
    "/v1/detect/direct": {"token ids": _WORST["token ids"]},
    "/v1/detect/aligned": {"token ids": _WORST["token ids"]},
    "/v1/detect/localized": {"256 documents of token ids": lambda: {"inputs": [_DOCUMENT] * 256}},
    "/v1/detect/jobs": {
        "16 MiB of token ids": lambda: WORST_BODIES["token ids"](_JOB),
        "documents of token ids": lambda: {"mode": "direct", "inputs": [_DOCUMENT] * (_JOB // 2_020)},
        "10,000 short texts": lambda: {"mode": "direct", "inputs": [{"text": "a b c"}] * 10_000},
        "7,000 texts": lambda: {"mode": "direct", "inputs": [_TEXT] * 7_000},
        "10,000 wrong documents": lambda: {"inputs": [{"txt": 1, "id": 5}] * 10_000},
        "100,000 documents": lambda: {"inputs": [{"text": "a"}] * 100_000},
    },
    "/v1/extract": {
        "a table of 220,000 rows": lambda: _table(220_000),
        "a table of 10,000 rows": lambda: _table(10_000),
        "a text of 5 MB": lambda: form(b"word " * _MIB),
        "5 MB to be escaped": lambda: form(b'"\\\n ' * (_MIB + _MIB // 4)),
        "no end": lambda: form(b"\r\n--" * (_BODY // 4 - 64))[:-9],
    },
    "/v1/content_provenance_checks": {
        "a table of 256 long rows": lambda: form(b"text\n" + b"word " * 6_000 + b"\n" * 256, "a.csv"),
        "a text of 5 MB": lambda: form(b"word " * _MIB),
    },
    "/v1/completions": {
        "a prompt of 8 MB": lambda: {**_MODEL, "prompt": _LONG},
        "a prompt of ids": lambda: {**_MODEL, "prompt": [300] * (_BODY // 5)},
        "1,024 prompts": lambda: {**_MODEL, "prompt": ["word " * 30] * 1_024},
        "biases": lambda: _chat(prompt="a", logit_bias=dict.fromkeys(map(str, range(40_000)), 1)),
        "log-probabilities": lambda: {**_MODEL, "prompt": "a", "max_tokens": 100, "n": 16, "logprobs": 20},
    },
    "/v1/chat/completions": {
        "a message of 8 MB": lambda: _chat(messages=[{**_ASKED, "content": _LONG}]),
        "9,900 messages": lambda: _chat(messages=[_ASKED] * _MANY),
        "9,900 parts": lambda: _chat(
            messages=[{**_ASKED, "content": [{"type": "text", "text": "a"}] * _MANY}]
        ),
        "a schema of 8 MB": lambda: _schema({"enum": ["a" * 50] * 90_000}),
        "tools": lambda: _chat(tools=[_tool(f"f{number}") for number in range(128)]),
        "template variables": lambda: _chat(chat_template_kwargs={"a": [1] * 2_000_000}),
    },
    "/v1/responses": {
        "an input of 8 MB": lambda: {**_MODEL, "input": _LONG},
        "9,900 messages": lambda: {**_MODEL, "input": [_ASKED] * _MANY},
    },
    "/v1/readings": {
        "a text of 8 MB": lambda: {**_MODEL, "texts": [_LONG]},
        "a text of 600,000 bytes": lambda: {**_MODEL, "texts": ["word " * 120_000]},
        "64 texts": lambda: {**_MODEL, "texts": ["word " * 600] * 64},
        "ids": lambda: {**_MODEL, "texts": [[300] * 25_000] * 64},
    },
    "/tokenize": {
        "a text of 8 MB": lambda: {"prompt": _LONG},
        "9,900 messages": lambda: _chat(messages=[_ASKED] * _MANY),
    },
    "/detokenize": {"ids": lambda: {"tokens": [300] * (_BODY // 5)}},
}
"""By route and name: the bodies that are large or many of something, up to the limits."""
_OF_DETECTION = ("/v1/detect", *PATHS)
_OF_A_JOB = ("", "/results", "/results?format=jsonl")


@dataclass(frozen=True)
class Row:
    """The longest pause of the loop under a body in milliseconds: the least of a few tries."""

    route: str
    body: str
    status: int
    ms: float


def rows(bed: WatchedBed, route: str, tries: int = 3) -> Iterator[Row]:
    """Sends each of a route's bodies a few times; of a job that is made its status and its results, too."""
    service = "detect" if route.startswith(_OF_DETECTION) else "gen"
    headers = {"Authorization": f"Bearer {bed.setup.token}", "Content-Type": "application/json"}
    headers |= FORM if route in PATHS else {}
    with httpx.Client(base_url=bed.url(service), headers=headers, timeout=300) as client:

        def asked(method: str, path: str, body: bytes = b"") -> tuple[httpx.Response, float]:
            return bed.longest_pause(service, lambda: client.request(method, path, content=body))

        for name, make in BODIES[route].items():
            made = make()
            body = made if isinstance(made, bytes) else json.dumps(made, separators=(",", ":")).encode()
            found = [asked("POST", route, body) for _ in range(tries)]
            yield Row(route, name, found[-1][0].status_code, round(min(pause for _, pause in found), 1))
            if job := found[0][0].headers.get("Location"):
                for path in _OF_A_JOB:
                    answer, pause = asked("GET", job + path)
                    yield Row(f"GET {route}/ID{path}", name, answer.status_code, round(pause, 1))
            for answer, _ in found:
                if "Location" in answer.headers:
                    client.delete(answer.headers["Location"])


def main() -> None:
    """Writes the rows, the longest pauses first; further arguments are a command that starts the services."""
    with tempfile.TemporaryDirectory() as folder, WatchedBed(Path(folder), sys.argv[2:]) as bed:
        found = [row for route in BODIES for row in rows(bed, route)]
    found.sort(key=lambda row: -row.ms)
    Path(sys.argv[1]).write_text(json.dumps([vars(row) for row in found], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
