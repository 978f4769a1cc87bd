"""`bench vllm`: pairs inside vLLM beside unmarked text, in one run of vLLM's environment."""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, ClassVar

import typer

from ttmark.evaluation.bench.generation import Generate, Model, Tokens, show
from ttmark.evaluation.bench.our_engine import OurEngine
from ttmark.evaluation.bench.workload import CHAT, PAPER, Measurement, Workload, setting
from ttmark.evaluation.cli.measured_run import new_app
from ttmark.evaluation.options import Json, model_path
from ttmark.evaluation.report import Table, groups
from ttmark.gen_service.api.features import FEATURES
from ttmark.shared.commands_of_dataclasses import command_of
from ttmark.shared.features import modules_of

_FILTERS = {"chat": CHAT, "paper": PAPER}
_CONTEXT = 2048
UNMARKED = "in vLLM, no watermark"


@dataclass(frozen=True, slots=True, kw_only=True)
class InVllm:
    """Pairs inside vLLM; run it where vLLM is installed, with OMP_NUM_THREADS (docs/vllm.md)."""

    name: ClassVar[str] = "vllm"

    model: Model = "smollm2"
    dtype: Annotated[str, typer.Option(help="float32 or bfloat16, for all.")] = "bfloat16"
    sequences: Annotated[str, typer.Option(help="Numbers of sequences, with commas.")] = "1,8,32"
    block_sizes: Annotated[str, typer.Option(help="Block sizes, with commas; 0 is no watermark.")] = "0,2"
    filters: Annotated[str, typer.Option(help="chat, paper (temperature 1), or both with a comma.")] = (
        "chat,paper"
    )
    prompts: Annotated[str, typer.Option(help="Tokens of each prompt, with commas.")] = "32"
    tokens: Tokens = 64
    rounds: Annotated[int, typer.Option(min=1, help="Turns of all block sizes; medians are shown.")] = 3
    json: Json = None

    def run(self) -> None:
        show(self._measured(), medians, self.json)

    def _measured(self) -> Iterator[Measurement]:
        loaders = [module.load_for_bench for module in modules_of("bench", FEATURES)]
        if not loaders:
            raise typer.BadParameter("there is no vLLM engine in this installation")
        counts, sizes, lengths = (
            [int(each) for each in chosen.split(",")]
            for chosen in (self.sequences, self.block_sizes, self.prompts)
        )
        workloads = [
            Workload(count, self.tokens, length, _FILTERS[name])
            for count, name, length in product(counts, self.filters.split(","), lengths)
        ]
        context = max(_CONTEXT, max(lengths) + self.tokens + 8)
        engine = OurEngine(loaders[0](model_path(self.model), self.dtype, max(*counts, 2), context))
        try:
            for workload in workloads:
                for size in sizes:
                    engine.measure(replace(workload, tokens=6), size)
                for _, size in product(range(self.rounds), sizes):
                    system = f"in vLLM, r = {size}" if size else UNMARKED
                    yield replace(engine.measure(workload, size), system=system)
        finally:
            engine.close()


def medians(seen: Sequence[Measurement]) -> Table:
    """Median tokens a second of each workload and block size, from least to most, and over unmarked text."""
    kinds = groups(seen, lambda item: (_place(item), item.system))
    speeds = {
        kind: statistics.median(item.rates.per_second for item in items) for kind, items in kinds.items()
    }
    rows = []
    for (place, system), items in kinds.items():
        speed, unmarked = speeds[place, system], speeds.get((place, UNMARKED))
        rates = sorted(item.rates.per_second for item in items)
        pause = statistics.median(item.details.get("seconds_per_token", math.nan) for item in items)
        spread, ratio = f"{rates[0]:.1f} to {rates[-1]:.1f}", f"{speed / unmarked:.2f}" if unmarked else ""
        rows.append((*place, system, f"{speed:.1f}", spread, ratio, f"{1e3 * pause:.1f}"))
    columns = ("sequences", "prompt", "filters", "system", "tokens/s", "least to most", f"over {UNMARKED}")
    return Table("Inside vLLM, median of the rounds", (*columns, "ms a token"), tuple(rows))


def _place(item: Measurement) -> tuple[str, str, str]:
    return str(item.workload.sequences), str(item.workload.prompt_tokens), setting(item)


def bench_app() -> typer.Typer:
    app = new_app("Benchmarks side by side with their peers.")
    for kind in (Generate, InVllm):
        app.command(kind.name)(command_of(kind.run, kind))
    return app
