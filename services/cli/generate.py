"""`ttmark generate`: a text from a running generation service."""

import json
from typing import Annotated

import typer

from services.cli.options import GenUrl, JsonOutput, Token, access_token, one_line_errors
from shared.client import TTMarkClient


def generate(
    prompt: Annotated[str, typer.Argument(help="The beginning of the text.")],
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens to generate.")] = 200,
    temperature: Annotated[
        float, typer.Option(min=0, help="0 is greedy and leaves nothing to watermark.")
    ] = 1.0,
    top_p: Annotated[float, typer.Option(min=0, max=1)] = 0.95,
    top_k: Annotated[int, typer.Option(min=0, help="0 is off.")] = 50,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same text.")] = None,
    model: Annotated[str, typer.Option(help="Model id as GET /v1/models lists it.")] = "demo",
    key: Annotated[str | None, typer.Option(help="Key id to watermark with; default: the service's.")] = None,
    url: GenUrl = "http://127.0.0.1:8000",
    token: Token = None,
    as_json: JsonOutput = False,
) -> None:
    """Generate a watermarked text."""
    body = {
        "model": model,
        "prompt": prompt,
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "seed": seed,
        "watermark": {"key_id": key} if key else None,
    }
    with one_line_errors(), TTMarkClient(url, access_token(token)) as client:
        completion = client.complete({name: value for name, value in body.items() if value is not None})
    typer.echo(json.dumps(completion) if as_json else prompt + completion["choices"][0]["text"])
    if not as_json:
        mark = completion["watermark"]
        typer.echo(f"[{mark['status']}, key {mark['key_id']} version {mark['key_version']}]", err=True)
