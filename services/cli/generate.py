"""`ttmark generate`: a text from a running generation service."""

import json
import sys
from typing import Annotated, Any

import typer

from ttmark.services.cli.files import STANDARD_INPUT, read_bytes
from ttmark.services.cli.options import (
    GenUrl,
    JsonOutput,
    PlainHttp,
    Token,
    access_token,
    one_line_errors,
)
from ttmark.services.startup import StartupError
from ttmark.shared.client import Client
from ttmark.shared.schemas.generation.chat import ChatResponse
from ttmark.shared.schemas.generation.completions import CompletionChoice, CompletionResponse
from ttmark.shared.schemas.generation.watermark_block import WatermarkBlock


def generate(
    prompt: Annotated[
        str | None, typer.Argument(help="Beginning of the text; left out or -: standard input.")
    ] = None,
    chat: Annotated[
        bool, typer.Option("--chat", help="Send the text as a user's message and print the answer.")
    ] = False,
    echo: Annotated[bool, typer.Option("--echo", help="Print the prompt too.")] = False,
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens to generate.")] = 200,
    temperature: Annotated[
        float | None, typer.Option(min=0, help="0 leaves nothing to watermark. Default: the model's own.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(min=0, max=1, help="1 is off. Default: the model's own.")
    ] = None,
    top_k: Annotated[int | None, typer.Option(min=0, help="0 is off. Default: the model's own.")] = None,
    repetition_penalty: Annotated[
        float | None, typer.Option(min=1, max=2, help="1 is off. Default: the model's own.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The same seed gives the same text, on an idle service.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model id; default: the only one.")] = None,
    key: Annotated[str | None, typer.Option(help="Key id to watermark with; default: the service's.")] = None,
    payload: Annotated[int | None, typer.Option(min=0, help="Number that detection reads back.")] = None,
    url: GenUrl = "http://127.0.0.1:8000",
    token: Token = None,
    plain_http: PlainHttp = False,
    as_json: JsonOutput = False,
) -> None:
    """Generate a watermarked text and print it, without the prompt."""
    marking = {"key_id": key or None, "payload": payload}
    marking = {name: value for name, value in marking.items() if value is not None}
    options: dict[str, Any] = {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "repetition_penalty": repetition_penalty,
        "seed": seed,
        "watermark": marking or None,
    }
    with one_line_errors(), Client(url, access_token(token), plain_http=plain_http) as client:
        text = prompt_text(prompt)
        body = {name: value for name, value in options.items() if value is not None}
        body["model"] = model or only_model(client)
        if chat:
            message = {"role": "user", "content": text}
            answer: ChatResponse | CompletionResponse = client.chat({**body, "messages": [message]})
        else:
            answer = client.complete({**body, "prompt": text})
        if not answer.choices:
            raise StartupError("the service's answer holds no text")
        choice, mark = answer.choices[0], answer.watermark
        written = choice.text if isinstance(choice, CompletionChoice) else choice.message.content or ""
    if as_json:
        typer.echo(json.dumps(answer.model_dump(mode="json")))
        return
    between = "\n\n" if chat else ""
    typer.echo(text + between + written if echo else written)
    if mark is not None:
        typer.echo(f"[{_summary(mark)}]", err=True)


def prompt_text(argument: str | None) -> str:
    """The prompt, from the command line or from standard input without its last line end.

    Raises:
        typer.BadParameter: there is none.
        StartupError: standard input is not UTF-8.
    """
    if argument is None and sys.stdin.isatty():
        raise typer.BadParameter("give a prompt, or - to type it on standard input")
    if argument not in (None, STANDARD_INPUT):
        text = str(argument)
    else:
        try:
            text = read_bytes(STANDARD_INPUT).decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise StartupError("standard input is not UTF-8 text") from error
    if not text:
        raise typer.BadParameter("the prompt is empty")
    return text


def only_model(client: Client) -> str:
    """The id of the model that is served.

    Raises:
        ClientError: the service did not say.
        StartupError: it serves several, or none.
    """
    served = [model.id for model in client.models().data]
    if len(served) == 1:
        return served[0]
    if not served:
        raise StartupError("the service serves no model")
    raise StartupError(f"several models are served, choose one with --model: {', '.join(served)}")


def _summary(mark: WatermarkBlock) -> str:
    """What became of the watermark; an older service does not say how detectable the text is."""
    parts = [f"{mark.status}, key {mark.key_id} version {mark.key_version}"]
    if mark.detectability is not None:
        parts.append(f"detectability {mark.detectability}")
    if mark.log10_p is not None:
        parts.append(f"log10 p {mark.log10_p:.1f}")
    return ", ".join(parts)
