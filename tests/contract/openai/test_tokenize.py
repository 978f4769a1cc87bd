"""/tokenize and /detokenize say what the model reads, as vLLM does."""

from typing import Any

import pytest

from tests.unit.gen_service.api.test_control_tokens import byte_level, encoder, messages
from ttmark.gen_service.api.conversation.control_tokens import ControlTokenRule
from ttmark.shared import tokenization

MESSAGES = [{"role": "user", "content": "Hi"}]


class Watched:
    """A tokenizer that reads short texts alone by the call that keeps all other threads waiting."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)

    def encode(self, text: str, **how: Any) -> Any:
        assert len(text) <= tokenization._SHORT_TEXT
        return self.backend.encode(text, **how)


def post(service: Any, path: str, token: str = "author", **body: Any) -> Any:
    return service.http(token).post(path, json={"model": "tiny", **body})


def test_a_text_becomes_the_tokens_that_a_completion_begins_with(service: Any) -> None:
    asked = {"model": "tiny", "prompt": "Once \u00e9", "max_tokens": 1, "return_token_ids": True}
    read = service.http().post("/v1/completions", json=asked).json()["choices"][0]["prompt_token_ids"]
    answer = post(service, "/tokenize", prompt="Once \u00e9").json()
    assert answer == {"count": len(read), "max_model_len": 256, "tokens": read, "token_strs": None}
    strings = post(service, "/tokenize", prompt="Once \u00e9", return_token_strs=True).json()["token_strs"]
    assert len(strings) == len(read)
    assert "".join(strings).startswith("Once")
    assert post(service, "/detokenize", tokens=read).json() == {"prompt": "Once \u00e9"}


def test_a_conversation_becomes_the_tokens_that_a_chat_begins_with(service: Any) -> None:
    asked = {"model": "tiny", "messages": MESSAGES, "max_tokens": 1, "return_token_ids": True}
    read = service.http().post("/v1/chat/completions", json=asked).json()["choices"][0]["prompt_token_ids"]
    assert post(service, "/tokenize", messages=MESSAGES).json()["tokens"] == read
    closed = post(service, "/tokenize", messages=MESSAGES, add_generation_prompt=False).json()["tokens"]
    assert closed == read[: len(closed)]
    assert len(closed) < len(read) or service.generator.tokenizer.decode(read).endswith("<assistant>")
    sad = post(service, "/tokenize", messages=MESSAGES, chat_template_kwargs={"mood": "sad"}).json()
    assert sad["count"] > len(read)


def test_more_than_the_context_holds_is_counted(fake: Any) -> None:
    answer = post(fake, "/tokenize", prompt="x" * 300).json()
    assert (answer["count"], answer["max_model_len"]) == (300, 256)
    assert post(fake, "/tokenize", prompt="").json()["tokens"] == []


@pytest.mark.parametrize(
    ("path", "asked"),
    [("/tokenize", {"prompt": "x" * 200}), ("/v1/completions", {"prompt": "x" * 200, "max_tokens": 1})],
)
def test_others_go_on_while_a_long_text_is_read(fake: Any, monkeypatch, path: str, asked: Any) -> None:
    monkeypatch.setattr(tokenization, "_SHORT_TEXT", 100)
    tokenizer = fake.generator.tokenizer
    monkeypatch.setattr(tokenizer, "backend", Watched(tokenizer.backend))
    assert post(fake, path, **asked).status_code == 200


@pytest.mark.parametrize("rule", ["text", "control"])
def test_others_go_on_while_a_long_conversation_is_read(rule: ControlTokenRule) -> None:
    conversations = encoder(byte_level(), rule)
    for name in ("_backend", "_twin"):
        setattr(conversations, name, Watched(getattr(conversations, name)))
    turns = messages([("user", "x" * 9_000)])
    assert len(conversations.encode(turns, "messages", 10_000)[1]) > 9_000


@pytest.mark.parametrize("path", ["/tokenize", "/detokenize"])
def test_they_take_the_token_of_a_chat(fake: Any, path: str) -> None:
    body = {"model": "tiny", "prompt": "a"} if path == "/tokenize" else {"model": "tiny", "tokens": [65]}
    assert fake.http().post(path, json=body).status_code == 200
    assert fake.http("detector").post(path, json=body).status_code == 403
    assert fake.http("nobody").post(path, json=body).status_code == 401
    assert fake.http().post(path, json=body, headers={"Authorization": ""}).status_code == 401


@pytest.mark.parametrize(
    ("path", "body", "status", "param"),
    [
        ("/tokenize", {"prompt": "a", "messages": MESSAGES}, 400, None),
        ("/tokenize", {}, 400, None),
        ("/tokenize", {"promt": "a"}, 400, "promt"),
        ("/tokenize", {"messages": MESSAGES, "add_special_tokens": True}, 400, "add_special_tokens"),
        ("/tokenize", {"prompt": "x" * 100_000}, 413, None),
        ("/tokenize", {"prompt": "a", "model": None}, 404, "model"),
        ("/detokenize", {"tokens": [257]}, 400, "tokens"),
        ("/detokenize", {"tokens": []}, 400, "tokens"),
        ("/detokenize", {"tokens": [1], "model": "none"}, 404, "model"),
    ],
)
def test_what_is_wrong_is_said_by_field(fake, path, body, status, param):
    answer = post(fake, path, **body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (status, param)
