"""`ttmark detect --conversation`: messages of one conversation, each a file, or those of chats in JSON."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

import typer

from ttmark.detect_service.features.files.commands.input_files import (
    LONGEST_ID,
    NotExamined,
    named_files,
    read_texts,
)
from ttmark.detect_service.options import DetectionOptions
from ttmark.services.cli.files import shown
from ttmark.services.cli.terminal import print_table
from ttmark.services.startup import StartupError
from ttmark.shared.client import Client
from ttmark.shared.schemas.detection.detect import (
    MAX_DOCUMENTS,
    CombinedResult,
    ConversationMessage,
    Document,
)

_CHAT = ".json"
_WRITER = "assistant"


def detect_conversation(names: Sequence[str], options: DetectionOptions, client: Client) -> CombinedResult:
    """The one result of messages in files, in order. Raises StartupError: one is not read; ClientError."""
    messages = list(_messages(names))
    if not 1 <= len(messages) <= MAX_DOCUMENTS:
        raise StartupError(f"a conversation has 1 to {MAX_DOCUMENTS} messages, not {len(messages)}")
    (result,) = client.detect(options.request(messages, {"conversation": True})).results
    return cast(CombinedResult, result)


def show_conversation(result: CombinedResult, *, as_json: bool) -> None:
    """Prints how the evidence grew, and the answer; or one JSON object."""
    if as_json:
        typer.echo(result.model_dump_json())
        return
    if result.messages:
        print_table([_row(one) for one in result.messages], named=True)
    if result.message is not None:
        typer.echo(f"{result.message.headline}. {result.message.explanation}")
        typer.echo(result.message.caution)


def _row(message: ConversationMessage) -> dict[str, str]:
    key = message.key
    made_with = "" if key is None else f"{key.key_id} v{key.version}"
    if key is not None and key.pool_key is not None:
        made_with += f" #{key.pool_key}"
    evidence = "" if message.log10_e is None else f"10^{message.log10_e:.1f}"
    return {
        "message": message.id,
        "tokens": str(message.tokens),
        "evidence so far": "left out" if message.error else evidence,
        "key": made_with,
    }


def _messages(names: Sequence[str]) -> Iterator[Document]:
    files, _ = named_files(names)
    for file, text in zip(files, read_texts(files), strict=True):
        if isinstance(text, NotExamined):
            raise StartupError(f"{text.name}: {text.reason}")
        name = shown(str(file))
        if str(file).lower().endswith(_CHAT):
            for number, one in enumerate(_of_chat(name, text), start=1):
                yield Document(id=f"{name} #{number}"[-LONGEST_ID:], text=one)
        else:
            yield Document(id=name[-LONGEST_ID:], text=text)


def _of_chat(name: str, text: str) -> Iterator[str]:
    """What a model wrote in a chat: its `messages` with the role `assistant`."""
    try:
        chat = json.loads(text)
        for message in chat["messages"]:
            if message["role"] == _WRITER:
                yield _text_of(message.get("content"))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise StartupError(
            f"{name}: not a chat in JSON, an object with `messages` of role and content"
        ) from None


def _text_of(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")
