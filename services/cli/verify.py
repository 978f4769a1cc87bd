"""`ttmark verify`: detection by whoever runs the model, through a running generation service."""

from pathlib import Path
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
    revealed: Annotated[
        Path | None,
        typer.Option(help="A file of `ttmark keys reveal`: look for its mark here. Needs --dated."),
    ] = None,
    dated: Annotated[
        str | None, typer.Option(help="With --revealed: since when the text is documented, in UTC.")
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="With --revealed: the model's tokenizer.json, or its folder.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model id; default: the only one.")] = None,
    url: GenUrl = "http://127.0.0.1:8000",
    token: Token = None,
    as_json: JsonOutput = False,
) -> None:
    """Look for the watermark in a text of your own model, which finds more than `ttmark detect`.

    Each block counts by how likely the model found it.

    With --revealed the text is tested for a key version that was made public, without a model. A text that is
    not documented from before the revelation is refused: exit code 1.
    """
    if revealed is not None:
        if chat or key or any(one is not None for one in (prompt, temperature, top_p, top_k, model)):
            raise typer.BadParameter("--revealed takes --dated, --tokenizer, --fpr and --json alone")
        from ttmark.services.cli.portable_marks import verify_revealed  # reads texts, which takes settings

        verify_revealed(file, revealed, dated, tokenizer, fpr, as_json=as_json)
        return
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
