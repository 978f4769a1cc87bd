"""`python -m evaluation.bench generate|support|budget|rows`: speed of the generation engine."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import orjson
import torch
import typer
from rich.console import Console

from evaluation.bench import generate as benchmarks
from evaluation.bench.random_model import LIKE_A_LANGUAGE_MODEL, llama_135m, save_random_model
from evaluation.bench.ratios import ratio_table, setting
from evaluation.bench.workload import PAPER, STRICT, Measurement

RANDOM_135M = "random-135m"

app = typer.Typer(no_args_is_help=True, help="Speed of the generation engine.")

Model = Annotated[
    str, typer.Option(help=f"A model folder, or {RANDOM_135M}: a 135M Llama with random weights.")
]
Tokens = Annotated[int, typer.Option(help="Tokens of each completion.")]
Dtype = Annotated[str, typer.Option(help="float32 or bfloat16, for all systems.")]
Threads = Annotated[int | None, typer.Option(help="CPU threads; torch's choice if left out.")]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")]


@app.command()
def generate(
    model: Model,
    sequences: Annotated[str, typer.Option(help="Numbers of sequences, with commas.")] = "1,8,32",
    tokens: Tokens = 64,
    block_sizes: Annotated[
        str, typer.Option(help="Block sizes, with commas; 0 is no watermark.")
    ] = "0,1,2,3",
    filters: Annotated[str, typer.Option(help="paper, strict or both.")] = "both",
    dtype: Dtype = "float32",
    threads: Threads = None,
    json: Json = None,
) -> None:
    """Our engine beside transformers."""
    chosen = {"paper": (PAPER,), "strict": (STRICT,)}.get(filters, (PAPER, STRICT))
    counts = [int(count) for count in sequences.split(",")]
    sizes = [int(size) for size in block_sizes.split(",")]
    with TemporaryDirectory() as scratch:
        folder = _folder(model, scratch, threads)
        measured = benchmarks.beside_transformers(
            folder, counts, tokens, dtype=dtype, threads=threads, block_sizes=sizes, filters=chosen
        )
        _report(measured, json, ratios=True)


@app.command()
def support(
    model: Model,
    sequences: int = 32,
    tokens: Tokens = 64,
    dtype: Dtype = "float32",
    threads: Threads = None,
    json: Json = None,
) -> None:
    """Throughput against the number of candidates m."""
    with TemporaryDirectory() as scratch:
        folder = _folder(model, scratch, threads)
        _report(benchmarks.by_support(folder, sequences, tokens, dtype=dtype, threads=threads), json)


@app.command()
def budget(
    model: Model,
    sequences: int = 32,
    tokens: Tokens = 200,
    dtype: Dtype = "float32",
    threads: Threads = None,
    json: Json = None,
) -> None:
    """Throughput and detection strength against the branch budget."""
    with TemporaryDirectory() as scratch:
        folder = _folder(model, scratch, threads)
        _report(benchmarks.by_budget(folder, sequences, tokens, dtype=dtype, threads=threads), json)


@app.command()
def rows(model: Model, dtype: Dtype = "float32", threads: Threads = None) -> None:
    """What a pass costs by its number of rows: where the knee is."""
    with TemporaryDirectory() as scratch:
        folder = _folder(model, scratch, threads)
        for count, seconds in benchmarks.by_rows(folder, dtype=dtype, threads=threads):
            typer.echo(f"{count:4d} rows {1e3 * seconds:9.2f} ms of CPU time {count / seconds:9.0f} rows/s")


def _folder(model: str, scratch: str, threads: int | None) -> str:
    if threads is not None:
        torch.set_num_threads(threads)
    if model != RANDOM_135M:
        return model
    save_random_model(Path(scratch) / "model", llama_135m(), logit_spread=LIKE_A_LANGUAGE_MODEL)
    return str(Path(scratch) / "model")


def _report(measured: Iterable[Measurement], json: Path | None, *, ratios: bool = False) -> None:
    """Prints the figures, the ratios between them first."""
    seen: list[Measurement] = []
    for item in measured:
        seen.append(item)
        typer.echo(f"measured {item.workload.sequences} x {setting(item)} {item.system}", err=True)
    typer.echo(benchmarks.machine())
    console = Console()
    if ratios:
        console.print(ratio_table(seen).rich())
    for item in seen:
        typer.echo(_line(item))
    if json is not None:
        names = [f"{item.system}, {item.workload.sequences} x {setting(item)}" for item in seen]
        rows = [{"name": name, **asdict(item)} for name, item in zip(names, seen, strict=True)]
        document = {"machine": benchmarks.machine(), "rows": rows}
        json.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")


def _line(item: Measurement) -> str:
    rates = item.rates
    figures = (
        f"{rates.per_second:8.1f} tokens/s {rates.per_cpu_second:8.1f} per CPU s" if rates else item.error
    )
    details = "  ".join(f"{name} {value:.3g}" for name, value in item.details.items())
    return f"{item.workload.sequences:3d} x {setting(item):15s} {item.system:34s} {figures}  {details}"
