"""`ttmark generate` against a service that notes what it is asked."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.unit.services.cli.conftest import Run
from ttmark.services.cli import generate as command

MARK = {"status": "watermarked", "reasons": {}, "key_id": "main", "key_version": 1, "profile": "p"}
MARK |= {"blocks": 2, "watermarked_blocks": 2}
MODEL = {"created": 1, "context_length": 9, "tokenizer_fingerprint": "f", "chat": True, "profiles": []}
MODEL |= {"a_new_field": 1}
ANSWER = {"id": "c", "created": 1, "model": "m", "watermark": MARK}
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
NO_CHOICES = json.dumps({**ANSWER, "choices": [], "usage": USAGE}).encode()


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
def generate(service: FakeService, run_against: Callable[..., Run]) -> Run:
    return run_against(command, service, "generate", "--token", "t")


def test_the_completion_alone_is_printed_and_the_status_apart_or_the_prompt_too_or_json(generate):
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
def test_it_says_how_detectable_the_text_is(generate, monkeypatch, receipt, said):
    monkeypatch.setitem(ANSWER, "watermark", {**MARK, **receipt})
    assert generate("The command").stderr == f"[watermarked, key main version 1{said}]\n"


@pytest.mark.parametrize(
    ("options", "path", "sent"),
    [
        # The only model is taken, and sampling is left to the service.
        ("", "/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 200}),
        (
            "--chat --max-tokens 5",
            "/v1/chat/completions",
            {"model": "m", "messages": [{"role": "user", "content": "a"}], "max_tokens": 5},
        ),
        (
            "--top-p 0.9 --top-k 0 --temperature 0 --seed 3 --key k --model other --max-tokens 5"
            " --repetition-penalty 1.2 --payload 7",
            "/v1/completions",
            {"model": "other", "prompt": "a", "max_tokens": 5, "temperature": 0, "top_p": 0.9, "top_k": 0}
            | {"repetition_penalty": 1.2, "seed": 3, "watermark": {"key_id": "k", "payload": 7}},
        ),
        (
            "--payload 0 --max-tokens 5",
            "/v1/completions",
            {"model": "m", "prompt": "a", "max_tokens": 5, "watermark": {"payload": 0}},
        ),
    ],
)
def test_options_that_are_given_are_sent_and_no_others(generate, service, options, path, sent):
    assert generate("a", *options.split()).exit_code == 0
    assert service.asked == [(path, sent)]
    assert generate("a", "--payload", "-1").exit_code == 2


@pytest.mark.parametrize(
    ("models", "line"),
    [
        (["a", "b"], "ttmark: several models are served, choose one with --model: a, b\n"),
        ([], "ttmark: the service serves no model\n"),
    ],
)
def test_a_choice_of_models_is_one_line(generate, service, models, line):
    service.models = models
    result = generate("a")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", line)


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_the_prompt_is_read_from_standard_input(generate, service, arguments):
    generate(*arguments, input="Two\nlines\n")
    assert service.asked[0][1]["prompt"] == "Two\nlines"


def test_a_prompt_that_is_empty_or_no_text_is_refused_without_asking(generate, service):
    assert generate(input="\n").exit_code == 2
    broken = generate("-", input=b"\xff")
    assert (broken.exit_code, broken.stderr) == (1, "ttmark: standard input is not UTF-8 text\n")
    assert service.asked == []


@pytest.mark.parametrize("content", [b"<html>", b"{}", b"[]", NO_CHOICES])
@pytest.mark.parametrize("options", [(), ("--chat",)])
def test_an_answer_of_another_kind_is_one_line(generate, service, content, options):
    service.broken = content
    result = generate("a", *options)
    assert result.exit_code == 1
    assert result.stderr.startswith("ttmark: ")
    assert result.stderr.count("\n") == 1
