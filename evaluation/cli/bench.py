"""`ttmark bench`: measurements beside peers, and two of them side by side."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import orjson
import torch
import typer
from rich.console import Console

from evaluation.bench.cli import app as engine
from evaluation.bench.detect import OurDetectors, measure_detectors
from evaluation.bench.timing import timing_table
from evaluation.cli.options import DEMO, HUMAN, Human, model_path
from evaluation.core.speed import REPEATS, measure_speed
from evaluation.manifest import machine
from evaluation.report.compare import compare_documents
from evaluation.report.table import Table
from shared.tokenization import TextTokenizer, TokenizerMissing
from shared.watermark import scheme_names

Document = Annotated[Path, typer.Argument(help="JSON that a benchmark or an experiment wrote.")]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")]
Scheme = Annotated[str, typer.Option(help=f"One of {', '.join(scheme_names())}.")]


def bench_app(ours: OurDetectors) -> typer.Typer:
    """The command line; `ours` makes the detection modes that `detect` compares with their peers."""
    app = typer.Typer(
        help="Benchmarks side by side with their peers.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.registered_commands += engine.registered_commands

    @app.command()
    def detect(
        tokenizer: Annotated[str, typer.Option(help="`demo`, or a folder with a tokenizer.")] = DEMO,
        scheme: Scheme = "synthid",
        block_size: Annotated[int, typer.Option(min=1, max=3, help="Tokens per block.")] = 2,
        documents: Annotated[int, typer.Option(min=1)] = 256,
        tokens: Annotated[int, typer.Option(min=10, help="Of each document.")] = 400,
        human: Human = HUMAN,
        json: Json = None,
    ) -> None:
        """Our bulk detection beside the bare tokenizer and transformers' SynthID detector, one core."""
        torch.set_num_threads(1)
        try:
            loaded = TextTokenizer.load(model_path(tokenizer))
            timings = measure_detectors(loaded, ours(loaded, scheme, block_size), human, documents, tokens)
        except (TokenizerMissing, OSError, ValueError) as error:
            typer.echo(f"ttmark: {error}", err=True)
            raise typer.Exit(1) from error
        title = f"Detection of {documents} documents of {tokens} tokens, {scheme}, r = {block_size}"
        notes = ("From text to verdict, tokenization included; the best of three turns.",)
        _finish(timing_table(title, "tokens", timings, notes), timings, json)

    @app.command()
    def core(scheme: Scheme = "synthid", seed: int = 1, json: Json = None) -> None:
        """Scoring, aligned and localized detection beside numpy's random words, one core."""
        speeds = measure_speed(scheme, seed)
        rows = tuple((item.name, f"{item.ratio:.1f}", f"{item.milliseconds:.2f}") for item in speeds)
        columns = ("", "of numpy's time for as many random words", "ms of CPU time")
        note = f"The best of {REPEATS} runs on one core."
        _finish(Table(f"The core, {scheme}, r = 2", columns, rows, (note,)), speeds, json)

    app.command()(compare)
    return app


def compare(before: Document, after: Document) -> None:
    """Every figure that two results share, and the ratio of the second to the first."""
    try:
        documents = [orjson.loads(path.read_bytes()) for path in (before, after)]
        table = compare_documents(before.name, documents[0], after.name, documents[1])
    except (OSError, ValueError) as error:
        typer.echo(f"ttmark: {error}", err=True)
        raise typer.Exit(1) from error
    Console().print(table.rich())


def _finish(table: Table, rows: Sequence[Any], json: Path | None) -> None:
    """Shows the figures with the machine that they were taken on, and keeps them."""
    described = machine()
    console = Console()
    console.print(table.rich())
    console.print(f"{described['processor']}, {described['cores']} cores, {described['memory_gib']} GiB")
    if json is not None:
        document = {"machine": described, "rows": [asdict(row) for row in rows]}
        json.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
