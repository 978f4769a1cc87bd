"""`bench vllm`: our engine inside vLLM beside vLLM without a watermark, in one run of vLLM's environment."""

import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from ttmark.evaluation.bench.figures import show
from ttmark.evaluation.bench.generation import Model, Tokens
from ttmark.evaluation.bench.ours import OurEngine
from ttmark.evaluation.bench.peers import vllm
from ttmark.evaluation.bench.workload import CHAT, PAPER, VLLM, Measurement, Workload, setting
from ttmark.evaluation.options import Json, model_path
from ttmark.evaluation.report.result import Table

_FILTERS = {"chat": CHAT, "paper": PAPER}
_CONTEXT = 2048
_PATIENCE_SECONDS = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InVllm:
    """Pairs inside vLLM beside vLLM; run it where vLLM is installed, with OMP_NUM_THREADS (docs/vllm.md)."""

    name: ClassVar[str] = "vllm"

    model: Model = "smollm2"
    dtype: Annotated[str, typer.Option(help="float32 or bfloat16, for both.")] = "bfloat16"
    sequences: Annotated[str, typer.Option(help="Numbers of sequences, with commas.")] = "1,8,32"
    block_sizes: Annotated[str, typer.Option(help="Block sizes, with commas; 0 is no watermark.")] = "0,1,2"
    filters: Annotated[str, typer.Option(help="chat, paper (temperature 1), or both with a comma.")] = (
        "chat,paper"
    )
    tokens: Tokens = 64
    rounds: Annotated[int, typer.Option(min=1, help="Turns of all systems; medians are shown.")] = 3
    json: Json = None

    def run(self) -> None:
        seen = []
        for item in self._measured():
            rate = f"{item.rates.per_second:.1f} tokens/s" if item.rates else item.error
            typer.echo(f"{item.workload.sequences} x {setting(item)} {item.system}: {rate}", err=True)
            seen.append(item)
        show([ratios(seen)], seen, self.json)

    def _measured(self) -> Iterator[Measurement]:
        from ttmark.gen_service.vllm_engine.engine import VllmEngine
        from ttmark.gen_service.vllm_engine.settings import VllmSettings

        counts = [int(count) for count in self.sequences.split(",")]
        sizes = [int(size) for size in self.block_sizes.split(",")]
        chosen = [_FILTERS[name] for name in self.filters.split(",")]
        folder, python = model_path(self.model), Path(sys.executable)
        settings = VllmSettings(
            dtype=self.dtype,
            max_sequences=max(*counts, 2),
            prefix_cache=False,
            arguments={"max_model_len": _CONTEXT},
        )
        ours = OurEngine(VllmEngine.load(folder, settings))
        try:
            for count in counts:
                for filters in chosen:
                    workload = Workload(count, self.tokens, filters=dict(filters))
                    for size in sizes:
                        ours.measure(replace(workload, tokens=6), size)
                    for _ in range(self.rounds):
                        yield vllm(python, folder, self.dtype, None, workload, _PATIENCE_SECONDS)
                        for size in sizes:
                            yield replace(
                                ours.measure(workload, size),
                                system=f"in vLLM, r = {size}" if size else "in vLLM, no watermark",
                            )
        finally:
            ours.close()


def ratios(seen: list[Measurement]) -> Table:
    """Median tokens a second of each system and workload, and their ratio to vLLM's."""
    rates: dict[tuple[int, str], dict[str, list[Measurement]]] = {}
    for item in seen:
        if item.rates is not None:
            place = rates.setdefault((item.workload.sequences, setting(item)), {})
            place.setdefault(item.system, []).append(item)
    rows = []
    for (sequences, filters), systems in rates.items():
        speeds = {name: _median(items) for name, items in systems.items()}
        for name, items in systems.items():
            ratio = f"{speeds[name] / speeds[VLLM]:.2f}" if VLLM in speeds else ""
            outside = [item.details.get("share_outside_forward") for item in items]
            shares = [share for share in outside if share is not None]
            decided = f"{100 * statistics.median(shares):.0f} %" if shares else ""
            rows.append((str(sequences), filters, name, f"{speeds[name]:.1f}", ratio, decided))
    columns = ("sequences", "filters", "system", "tokens/s", f"over {VLLM}", "outside of forwards")
    return Table("Inside vLLM, median of the rounds", columns, tuple(rows))


def _median(items: list[Measurement]) -> float:
    return statistics.median(item.rates.per_second for item in items if item.rates is not None)
