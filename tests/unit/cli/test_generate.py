"""`ttmark generate` against a service that notes what it is asked."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from ttmark.services.cli.main import app
from ttmark.shared.client import Client

MARK = {
    "status": "watermarked",
    "reasons": {},
    "key_id": "main",
    "key_version": 1,
    "profile": "p",
    "blocks": 2,
    "watermarked_blocks": 2,
}
MODEL = {
    "created": 1,
    "context_length": 9,
    "tokenizer_fingerprint": "f",
    "chat": True,
    "profiles": [],
    "a_new_field": 1,
}
ANSWER = {"id": "c", "created": 1, "model": "m", "watermark": MARK}
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
NO_CHOICES = json.dumps({**ANSWER, "choices": [], "usage": USAGE}).encode()
Generate = Callable[..., Result]


class FakeService:
    """Answers completions and chats; `models` are served."""

    def __init__(self) -> None:
        self.models = ["m"]
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.broken: bytes | None = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/models":
            return httpx.Response(200, json={"data": [{**MODEL, "id": model} for model in self.models]})
        self.asked.append((request.url.path, json.loads(request.content)))
        if self.broken is not None:
            return httpx.Response(200, content=self.broken)
        if request.url.path == "/v1/completions":
            choice: dict[str, Any] = {"index": 0, "text": " reads it.", "finish_reason": "stop"}
        else:
            message = {"role": "assistant", "content": "An answer."}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return httpx.Response(200, json={**ANSWER, "choices": [choice], "usage": USAGE})


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
def generate(service: FakeService, monkeypatch: pytest.MonkeyPatch) -> Generate:
    client = partial(Client, transport=httpx.MockTransport(service))
    monkeypatch.setattr("ttmark.services.cli.generate.Client", client)

    def call(*arguments: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, ["generate", *arguments, "--token", "t"], input=stdin)

    return call


def test_the_completion_alone_is_printed_and_the_status_apart_or_the_prompt_too_or_json(
    generate: Generate,
) -> None:
    result = generate("The command")
    assert result.exit_code == 0, result.output
    assert result.stdout == " reads it.\n"
    assert result.stderr == "[watermarked, key main version 1]\n"
    assert generate("The command", "--echo").stdout == "The command reads it.\n"
    assert generate("A question?", "--echo", "--chat").stdout == "A question?\n\nAn answer.\n"
    assert json.loads(generate("a", "--json").stdout)["watermark"] == MARK


@pytest.mark.parametrize(
    ("receipt", "said"),
    [
        ({"detectability": "weak"}, ", detectability weak"),
        ({"detectability": "strong", "log10_p": -12.345}, ", detectability strong, log10 p -12.3"),
    ],
)
def test_it_says_how_detectable_the_text_is(
    generate: Generate, monkeypatch: pytest.MonkeyPatch, receipt: dict[str, Any], said: str
) -> None:
    monkeypatch.setitem(ANSWER, "watermark", {**MARK, **receipt})
    assert generate("The command").stderr == f"[watermarked, key main version 1{said}]\n"


def test_chat_sends_a_users_message_and_prints_the_answer(generate: Generate, service: FakeService) -> None:
    assert generate("A question?", "--chat").stdout == "An answer.\n"
    path, body = service.asked[0]
    assert path == "/v1/chat/completions"
    assert body["messages"] == [{"role": "user", "content": "A question?"}]


def test_the_only_model_is_taken_and_sampling_is_left_to_the_service(
    generate: Generate, service: FakeService
) -> None:
    generate("The command")
    assert service.asked == [("/v1/completions", {"model": "m", "prompt": "The command", "max_tokens": 200})]


def test_options_that_are_given_are_sent(generate: Generate, service: FakeService) -> None:
    options = "--top-p 0.9 --top-k 0 --temperature 0 --seed 3 --key k --model other --max-tokens 5"
    options += " --repetition-penalty 1.2"
    generate("a", *options.split())
    assert service.asked[0][1] == {
        "model": "other",
        "prompt": "a",
        "max_tokens": 5,
        "temperature": 0,
        "top_p": 0.9,
        "top_k": 0,
        "repetition_penalty": 1.2,
        "seed": 3,
        "watermark": {"key_id": "k"},
    }


@pytest.mark.parametrize(
    ("options", "sent"),
    [("--payload 0", {"payload": 0}), ("--payload 7 --key k", {"key_id": "k", "payload": 7})],
)
def test_a_payload_is_sent(
    generate: Generate, service: FakeService, options: str, sent: dict[str, object]
) -> None:
    assert generate("a", *options.split()).exit_code == 0
    assert service.asked[0][1]["watermark"] == sent
    assert generate("a", "--payload", "-1").exit_code == 2


@pytest.mark.parametrize(
    ("models", "line"),
    [
        (["a", "b"], "ttmark: several models are served, choose one with --model: a, b\n"),
        ([], "ttmark: the service serves no model\n"),
    ],
)
def test_a_choice_of_models_is_one_line(
    generate: Generate, service: FakeService, models: list[str], line: str
) -> None:
    service.models = models
    result = generate("a")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", line)


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_the_prompt_is_read_from_standard_input(
    generate: Generate, service: FakeService, arguments: tuple[str, ...]
) -> None:
    generate(*arguments, stdin="Two\nlines\n")
    assert service.asked[0][1]["prompt"] == "Two\nlines"


def test_a_prompt_that_is_empty_or_no_text_is_refused_without_asking(
    generate: Generate, service: FakeService
) -> None:
    assert generate(stdin="\n").exit_code == 2
    broken = generate("-", stdin=b"\xff")
    assert (broken.exit_code, broken.stderr) == (1, "ttmark: standard input is not UTF-8 text\n")
    assert service.asked == []


@pytest.mark.parametrize("content", [b"<html>", b"{}", b"[]", NO_CHOICES])
@pytest.mark.parametrize("options", [(), ("--chat",)])
def test_an_answer_of_another_kind_is_one_line(
    generate: Generate, service: FakeService, content: bytes, options: tuple[str, ...]
) -> None:
    service.broken = content
    result = generate("a", *options)
    assert result.exit_code == 1
    assert result.stderr.startswith("ttmark: ")
    assert result.stderr.count("\n") == 1
