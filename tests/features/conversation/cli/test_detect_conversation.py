"""`ttmark detect --conversation` from its arguments to its exit code, with a service that this test plays."""

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.services.cli.conftest import Run

# Its name is a function's, too.
command = import_module("ttmark.detect_service.features.files.commands.detect")

WHY = {"code": "evidence_spent", "message": "Ask later."}
KEY = {"key_id": "k", "version": 2, "profile": "p", "pool_key": 7}


class Played:
    """Answers that the evidence grows by two decades a message; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.verdict = "watermarked"

    def answer(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.asked.append(body)
        messages = [
            {"id": one["id"], "tokens": 9, "log10_e": 2.0 * place, "key": KEY if place else None}
            for place, one in enumerate(body["inputs"])
        ]
        result: dict[str, Any] = {"id": "conversation", "verdict": self.verdict, "tokens": 9, "hypotheses": 1}
        if self.verdict == "no_verdict":
            result["error"] = WHY
        words = {"headline": "So it is", "explanation": "As it grew.", "caution": "Careful."}
        result |= {"messages": messages, "message": words}
        return httpx.Response(200, json={"results": [result], "request_id": "r"})


@pytest.fixture
def service() -> Played:
    return Played()


@pytest.fixture
def run(service: Played, run_against: Callable[..., Run]) -> Run:
    run = run_against(command, service.answer, "detect", "--token", "t", "--conversation")
    for name, text in (("b.txt", "first"), ("a.txt", "second")):
        Path(name).write_text(text)
    chat = [
        {"role": "user", "content": "Hello?"},
        {"role": "assistant", "content": "Hello."},
        {"role": "assistant", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo!"}]},
        {"role": "assistant", "content": None},
        {"role": "assistant", "tool_calls": []},
    ]
    Path("chat.json").write_text(json.dumps({"model": "m", "messages": chat}))
    Path("bad.json").write_text('{"messages": ["hello"]}')
    return run


def test_files_in_order_and_what_a_model_wrote_in_a_chat_are_one_question(run: Run, service: Played) -> None:
    result = run("b.txt", "chat.json", "a.txt", "--fail-on-found")
    assert result.exit_code == 3
    (asked,) = service.asked
    assert asked["conversation"] is True
    assert [one["text"] for one in asked["inputs"]] == ["first", "Hello.", "Hello!", "", "", "second"]
    of_chat = [f"chat.json #{number}" for number in range(1, 5)]
    assert [one["id"] for one in asked["inputs"]] == ["b.txt", *of_chat, "a.txt"]


def test_the_evidence_is_shown_as_it_grew(run: Run) -> None:
    output = run("b.txt", "a.txt").output
    assert "10^0.0" in output
    assert "10^2.0" in output
    assert "k v2 #7" in output
    assert "So it is. As it grew.\nCareful." in output
    (line,) = run("b.txt", "a.txt", "--json").output.splitlines()
    assert [one["log10_e"] for one in json.loads(line)["messages"]] == [0.0, 2.0]


def test_a_conversation_without_a_verdict_has_failed(run: Run, service: Played) -> None:
    service.verdict = "no_verdict"
    assert run("b.txt").exit_code == 1


@pytest.mark.parametrize("arguments", [["b.txt", "missing.txt"], ["bad.json"]])
def test_a_message_that_is_not_read_ends_the_question(run, service, arguments):
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.output.count("\n") == 1
    assert service.asked == []


@pytest.mark.parametrize("more", [["--mode", "direct"], ["--bulk", "in.jsonl"]])
def test_a_conversation_is_one_question_of_any_kind(run: Run, more: list[str]) -> None:
    assert run("b.txt", *more).exit_code == 2
