"""A chat answer as it is written, from the events of `/v1/chat/completions`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ttmark.services.runtime import StartupError
from ttmark.shared.client import Client, ClientError, ServiceUnreachable


def stream_answer(generation: Client, body: Mapping[str, Any]) -> Iterator[str]:
    """Pieces of the answer to a request.

    Raises:
        StartupError: the service refused, failed or went away.
    """
    try:
        for chunk in generation.stream_chat(body):
            yield "".join(choice.delta.content or "" for choice in chunk.choices)
    except ServiceUnreachable as error:
        raise StartupError(f"the chat broke off: {error}") from error
    except ClientError as error:
        raise StartupError(f"the chat failed: {error}") from error


def print_stream(pieces: Iterable[str], console: Console) -> str:
    """Prints a text as it is written, and returns it; not on a terminal, when it is whole."""
    text = Text()
    with Live(text, console=console):
        for piece in pieces:
            text.append(piece)
    if not console.is_terminal:  # there Live ends the line itself
        console.line()
    return text.plain
