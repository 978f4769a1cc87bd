"""What `ttmark up` shows: one text goes round, through HTTP, as a client would do it."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ttmark.services.cli.next_steps import next_steps
from ttmark.services.local.processes import LocalServices
from ttmark.services.model_folder import DEMO, has_chat_template
from ttmark.services.startup import StartupError
from ttmark.shared.client import Client, ClientError, ServiceUnreachable
from ttmark.shared.schemas.detection.detect import DEFAULT_FPR, DirectRequest, Document


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


QUESTION = "Write a long letter to a friend about a week of walking in the mountains, day by day."
PROMPT = "The command reads the file and"
TOKENS = 200
_MEANING = f"""\
watermarked   The text carries the mark of that key.
not_detected  No mark of that key was found. A human may have written it, or another model.
too_short     There is not enough text to tell.
p-value       The chance that a text without the mark looks as marked as this one.
              Up to {DEFAULT_FPR:g} the verdict is watermarked.
"""


def human_text() -> str:
    return " ".join(Path(__file__).with_name("human_text.txt").read_text().split())


def demonstrate(services: LocalServices, console: Console) -> None:
    """Generates a text, detects it under its key, under another key, and tries a human text.

    Raises:
        StartupError: a service refused a request.
    """
    # The demo model has a template for tests of the API; it goes on with texts, and answers nothing.
    chat = services.setup.model != DEMO and has_chat_template(services.setup.tokenizer_folder)
    try:
        text = _ask(services, console) if chat else _complete(services, console)
        table = _look(services, text)
    except ClientError as error:
        raise StartupError(f"the demonstration failed: {error}") from error
    console.print(table)
    console.print(_MEANING, markup=False, highlight=False, soft_wrap=True)
    console.print(next_steps(services, chat=chat), soft_wrap=True, highlight=False, markup=False)


def _ask(services: LocalServices, console: Console) -> str:
    setup = services.setup
    console.print(f"\n[bold]You:[/] {QUESTION}\n[bold]{escape(setup.model_id)}:[/]")
    messages = [{"role": "user", "content": QUESTION}]
    body = {"model": setup.model_id, "messages": messages, "max_tokens": TOKENS}
    with Client(services.gen_url, setup.token) as generation:
        return print_stream(stream_answer(generation, body), console)


def _complete(services: LocalServices, console: Console) -> str:
    """What a model that does not chat writes after the prompt."""
    setup = services.setup
    body = {"model": setup.model_id, "prompt": PROMPT, "ignore_eos": True, "max_tokens": TOKENS, "top_k": 50}
    with Client(services.gen_url, setup.token) as generation:
        completion = generation.complete(body)
    text = completion.choices[0].text
    console.print(Panel(PROMPT + "[bold]" + escape(text) + "[/]", title=f"{TOKENS} tokens, watermarked"))
    return text


def _look(services: LocalServices, text: str) -> Table:
    """What is found in the text under two keys, and in a human's."""
    setup, table = services.setup, Table("text", "looked for", "verdict", "p-value")
    with Client(services.detect_url, setup.token) as detection:
        for name, document, which, key_id in (
            ("the generated text", text, "its key", setup.key_id),
            ("the same text", text, "another key", setup.other_key_id),
            ("a human's paragraph", human_text(), "the same key", setup.key_id),
        ):
            request = DirectRequest(inputs=[Document(text=document)], keys=[key_id], phase="any")
            result = detection.detect(request).results[0]
            style = "green" if result.verdict == "watermarked" else "yellow"
            p_value = "" if result.p_value is None else f"{result.p_value:.2g}"
            table.add_row(name, f"{which}, {key_id}", f"[{style}]{result.verdict}[/]", p_value)
    return table
