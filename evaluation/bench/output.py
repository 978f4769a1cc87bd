"""What a benchmark shows and keeps: its figures with the command that took them and the machine."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import torch
import typer
from rich.console import Console

from ttmark.evaluation.bench.workload import Measurement, setting
from ttmark.evaluation.command_line import command_line
from ttmark.evaluation.json_files import write_kept
from ttmark.evaluation.report.result import Table
from ttmark.evaluation.run_manifest import machine, versions


def show(
    measured: Iterable[Measurement], table: Callable[[Sequence[Measurement]], Table], json: Path | None
) -> list[Measurement]:
    """Says each figure as it comes, then the table and the machine; writes all to `json` with versions."""
    seen, rows = [], []
    for item in measured:
        name = f"{item.system}, {item.workload.sequences} x {setting(item)}"
        typer.echo(f"{name}: {item.rates.per_second:.1f} tokens/s", err=True)
        seen.append(item)
        rows.append({"name": name, **asdict(item)})
    capability = torch.backends.cpu.get_cpu_capability()
    described = machine() | {"torch": f"{torch.__version__}, {torch.get_num_threads()} threads, {capability}"}
    console = Console()
    console.print(table(seen).rich())
    console.print(", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in described.items()))
    if json is not None:
        command = command_line(without="--json")
        write_kept(json, {"command": command, "machine": described, "versions": versions(), "rows": rows})
    return seen
