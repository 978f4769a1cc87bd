"""What a benchmark shows and keeps: its figures with the command that took them and the machine."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from ttmark.evaluation.command_line import command_line
from ttmark.evaluation.json_files import write_kept
from ttmark.evaluation.report.result import Table
from ttmark.evaluation.run_manifest import machine, versions


def show(tables: Sequence[Table], rows: Sequence[Any], json: Path | None, names: Sequence[str] = ()) -> None:
    """Shows the tables and the machine, and writes the rows to `json` with command and versions.

    Args:
        rows: dataclasses.
        names: of the rows, where they have no field `name`; `tests.harness.gpu` prints them.
    """
    capability = torch.backends.cpu.get_cpu_capability()
    described = machine() | {"torch": f"{torch.__version__}, {torch.get_num_threads()} threads, {capability}"}
    console = Console()
    for table in tables:
        console.print(table.rich())
    console.print(", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in described.items()))
    if json is not None:
        named = [{"name": name} for name in names] or [{} for _ in rows]
        document = {
            "command": command_line(without="--json"),
            "machine": described,
            "versions": versions(),
            "rows": [name | asdict(row) for name, row in zip(named, rows, strict=True)],
        }
        write_kept(json, document)
