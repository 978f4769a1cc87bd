"""`ttmark eval`: the paper's experiments on any Hugging Face causal language model."""

from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from evaluation.direct import FPRS, Cell, gain, measure_cell
from evaluation.prompts import read_prompts
from evaluation.settings import SETTINGS, Setting
from gen_service.demo_model import DEMO_MODEL_PATH
from gen_service.engine import Engine, EngineSettings
from shared.watermark import Watermark, scheme_names

app = typer.Typer(help="The paper's experiments on any causal language model.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """The paper's experiments on any causal language model."""


@app.command()
def direct(
    setting: Annotated[
        list[Setting],
        typer.Option(
            help="Sampling setting; may be repeated.",
            default_factory=lambda: [Setting.STRICT, Setting.DEFAULT],
        ),
    ],
    scheme: Annotated[
        list[str], typer.Option(help="Scheme; may be repeated.", default_factory=lambda: ["synthid"])
    ],
    block_size: Annotated[
        list[int], typer.Option(help="Tokens per block; may be repeated.", default_factory=lambda: [1, 2])
    ],
    model: Annotated[str, typer.Option(help="Hub id or folder.")] = str(DEMO_MODEL_PATH),
    prompts: Annotated[Path, typer.Option(help="JSONL with the field `prompt`.")] = (
        DEMO_MODEL_PATH.parent / "prompts.jsonl"
    ),
    tokens: Annotated[int, typer.Option(min=1, help="Length of each text.")] = 200,
    texts: Annotated[int, typer.Option(min=2, help="Texts per cell.")] = 100,
    out: Annotated[Path | None, typer.Option(help="Write the results as JSON to this file.")] = None,
) -> None:
    """Direct detection: TPR at fixed FPR, median p-value, and the gain in mean z over single tokens."""
    unknown = set(scheme) - set(scheme_names())
    if unknown:
        raise typer.BadParameter(f"unknown scheme {min(unknown)}; known: {', '.join(scheme_names())}")
    engine = Engine.load(model, EngineSettings())
    engine.start()
    try:
        prompt_ids = read_prompts(prompts, engine.tokenizer, texts)
        with Progress(transient=True) as progress:
            cells = [
                measure_cell(engine, prompt_ids, Watermark(name, size), SETTINGS[choice], tokens, progress)
                for choice in setting
                for name in scheme
                for size in block_size
            ]
    finally:
        engine.stop(drain_seconds=0)
    Console().print(_table(cells))
    if out:
        rows = [cell.as_json() | {"gain": _gain_text(cell, cells)} for cell in cells]
        out.write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2))


def _table(cells: list[Cell]) -> Table:
    table = Table(
        "setting",
        "scheme",
        "r",
        *(f"TPR @ {fpr:g}" for fpr in FPRS),
        "median p",
        "mean z",
        "gain in z [95 %]",
    )
    for cell in cells:
        table.add_row(
            str(cell.setting),
            cell.scheme,
            str(cell.block_size),
            *(f"{100 * rate.estimate:.1f} %" for rate in cell.tpr),
            f"1e{cell.median_log10_p:.1f}",
            f"{cell.z:.2f}",
            _gain_text(cell, cells),
        )
    return table


def _gain_text(cell: Cell, cells: list[Cell]) -> str:
    singles = [
        other
        for other in cells
        if (other.scheme, other.setting, other.block_size) == (cell.scheme, cell.setting, 1)
    ]
    return str(gain(cell, singles[0])) if singles and cell.block_size > 1 else ""
