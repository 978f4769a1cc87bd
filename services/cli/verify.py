"""`ttmark verify`: detection by whoever runs the model, through a running generation service."""

from typing import Annotated, Any

import typer

from ttmark.services.cli.generate import only_model
from ttmark.services.cli.options import GenUrl, JsonOutput, Token, access_token, one_line_errors
from ttmark.shared.client import Client
from ttmark.shared.languages.words import ENGLISH, counted
from ttmark.shared.schemas.detection import DEFAULT_FPR
from ttmark.shared.schemas.verification import VerificationResponse

FOUND = "The text carries the mark of the key."


def verify(
    file: Annotated[str, typer.Argument(help="A file as `ttmark detect` reads them, or -.")],
    prompt: Annotated[
        str | None, typer.Option(help="What the text continues, or answers with --chat.")
    ] = None,
    chat: Annotated[bool, typer.Option("--chat", help="The prompt was a user's message.")] = False,
    temperature: Annotated[
        float | None, typer.Option(help="Of the sampling; wrong values cost power. Default: the model's own.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Of the sampling; 1 is off. Default: the model's own.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(help="Of the sampling; 0 is off. Default: the model's own.")
    ] = None,
    repetition_penalty: Annotated[
        float | None, typer.Option(help="Of the sampling; 1 is off. Default: the model's own.")
    ] = None,
    key: Annotated[
        list[str] | None, typer.Option(help="Key id to try; may be repeated; default: all.")
    ] = None,
    fpr: Annotated[float, typer.Option(help="False positive rate.")] = DEFAULT_FPR,
    model: Annotated[str | None, typer.Option(help="Model id; default: the only one.")] = None,
    url: GenUrl = "http://127.0.0.1:8000",
    token: Token = None,
    as_json: JsonOutput = False,
) -> None:
    """Look for the watermark in a text of your own model, which finds more than `ttmark detect`.

    Each block counts by how likely the model found it.
    """
    if chat and prompt is None:
        raise typer.BadParameter("--chat takes --prompt, the user's message")
    with one_line_errors(), Client(url, access_token(token)) as client:
        from ttmark.services.cli.input_files import read_text  # has settings, which others start without

        body: dict[str, Any] = {
            "text": read_text(file),
            "temperature": temperature,
            "top_p": top_p,
            "top_k": top_k,
            "repetition_penalty": repetition_penalty,
        }
        body |= {"fpr": fpr, "keys": key or None, "model": model or only_model(client)}
        if prompt is not None:
            body |= {"messages": [{"role": "user", "content": prompt}]} if chat else {"prompt": prompt}
        answer = client.verify(body)
    typer.echo(answer.model_dump_json() if as_json else summary(answer))


def summary(answer: VerificationResponse) -> str:
    made_with = "" if answer.key is None else f", key {answer.key.key_id} version {answer.key.version}"
    line = (
        f"{answer.verdict}{made_with}: p-value {answer.p_value:.2g}, log10 E {answer.log10_e:.1f}, "
        f"{counted(answer.tokens, 'token')}"
    )
    return "\n".join([line, FOUND, ENGLISH.say("found.caution")] if answer.key else [line])
