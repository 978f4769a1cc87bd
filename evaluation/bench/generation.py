"""`bench generate`: speed of our engine, beside transformers' and llama.cpp's in one run."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, cast, get_args

import orjson
import torch
import typer
from rich.console import Console

from ttmark.evaluation.bench.llama_cpp_peer import LlamaCpp
from ttmark.evaluation.bench.our_engine import OurEngine
from ttmark.evaluation.bench.transformers_peer import Transformers
from ttmark.evaluation.bench.workload import CHAT, PAPER, STRICT, Measurement, Workload, ratio_table, setting
from ttmark.evaluation.options import Json, model_path
from ttmark.evaluation.report import Table
from ttmark.evaluation.run_manifest import command_line, machine, versions
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.settings import EngineSettings, Quantization
from ttmark.shared.whole_file import AS_UMASK_SAYS, write_whole

_FILTERS = {"paper": (PAPER,), "strict": (STRICT,), "chat": (CHAT,), "both": (PAPER, STRICT)}
_BUDGETS_BESIDE_PEERS = (4, 8)
_STEP_ROWS = 2048

Model = Annotated[str, typer.Option(help="`smollm2`, `demo`, a model folder or a hub id.")]
Tokens = Annotated[int, typer.Option(min=1, help="Tokens of each completion.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate:
    """Our engine beside transformers."""

    name: ClassVar[str] = "generate"

    model: Model
    dtype: Annotated[str, typer.Option(help="float32 or bfloat16, for all systems.")] = "float32"
    quantization: Annotated[
        str, typer.Option(help="Of our engine's matrices: auto, int4, int8 or none; several, with commas.")
    ] = "auto"
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; default: torch's choice.")] = None
    sequences: Annotated[str, typer.Option(help="Numbers of sequences, with commas.")] = "1,8,32"
    prompt_tokens: Annotated[int, typer.Option(min=1, help="Tokens of each prompt.")] = 32
    tokens: Tokens = 64
    block_sizes: Annotated[str, typer.Option(help="Block sizes, with commas; 0 is no watermark.")] = "0,1,2,3"
    filters: Annotated[str, typer.Option(help="paper, strict, chat or both (paper and strict).")] = "both"
    synthid: Annotated[
        bool, typer.Option(help="Whether transformers' SynthID is measured, which is slow.")
    ] = True
    gguf: Annotated[
        str | None, typer.Option(help="The model as a GGUF file, for llama.cpp (the extra `bench`).")
    ] = None
    runs: Annotated[int, typer.Option(min=1, help="Each figure is the median of so many, in turn.")] = 1
    json: Json = None

    def run(self) -> None:
        for item in show(self._measured(), ratio_table, self.json):
            typer.echo(_line(item))

    def _measured(self) -> Iterator[Measurement]:
        """Ours and the peers side by side, one number of sequences and one set of filters after the other.

        Ours: each block size, and pairs with a budget of 4 and of 8 branches. What belongs to one comparison
        is measured within minutes of each other.
        """
        counts = [int(count) for count in self.sequences.split(",")]
        sizes = [int(size) for size in self.block_sizes.split(",")]
        if self.filters not in _FILTERS:
            raise typer.BadParameter(f"--filters is one of {', '.join(_FILTERS)}")
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        try:
            folder = model_path(self.model)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        with ExitStack() as opened:
            ours = [
                opened.enter_context(self._engine(folder, max(counts), kind))
                for kind in self.quantization.split(",")
            ]
            peers = Transformers(folder, self.dtype)
            for count in counts:
                for filters in _FILTERS[self.filters]:
                    workload = Workload(count, self.tokens, self.prompt_tokens, filters)
                    warm_up = replace(workload, tokens=4)
                    for engine in ours:
                        engine.measure(warm_up, 2)
                    peers.generate(warm_up, synthid=False)
                    rounds = [list(self._round(ours, peers, workload, sizes)) for _ in range(self.runs)]
                    for items in zip(*rounds, strict=True):
                        yield sorted(items, key=lambda item: item.rates.per_cpu_second)[len(items) // 2]

    def _round(
        self, ours: Sequence[OurEngine], peers: Transformers, workload: Workload, sizes: Sequence[int]
    ) -> Iterator[Measurement]:
        asked = [(size, None) for size in sizes] + [(2, budget) for budget in _BUDGETS_BESIDE_PEERS]
        for block_size, budget in asked:
            for engine in ours:
                yield engine.measure(workload, block_size, max_branches=budget)
        yield peers.generate(workload, synthid=False)
        if self.synthid:
            yield peers.generate(workload, synthid=True)
        if self.gguf is not None:
            try:
                yield LlamaCpp(self.gguf, torch.get_num_threads()).measure(
                    workload, ours[0].prompts(workload)
                )
            except RuntimeError as error:
                raise typer.BadParameter(str(error), param_hint="--gguf") from error

    @contextmanager
    def _engine(self, folder: str, sequences: int, quantization: str) -> Iterator[OurEngine]:
        """The embedded engine, started; its passes are not reproducible, a service's default."""
        if quantization not in get_args(Quantization):
            raise typer.BadParameter(f"--quantization is of {', '.join(get_args(Quantization))}")
        settings = EngineSettings(
            dtype=self.dtype,
            quantization=cast(Quantization, quantization),
            threads=self.threads,
            max_sequences=sequences,
            step_rows=_STEP_ROWS,
            max_waiting=sequences,
            reproducible=False,
            prefix_cache=False,
        )
        label = "" if quantization == self.quantization else f", {quantization}"
        engine = OurEngine(Engine.load(folder, settings), label)
        try:
            yield engine
        finally:
            engine.close()


def _line(item: Measurement) -> str:
    rates = item.rates
    figures = f"{rates.per_second:8.1f} tokens/s {rates.per_cpu_second:8.1f} per CPU s"
    details = "  ".join(f"{name} {value:.3g}" for name, value in item.details.items())
    return f"{item.workload.sequences:3d} x {setting(item):15s} {item.system:34s} {figures}  {details}"


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
        kept = {"command": command, "machine": described, "versions": versions(), "rows": rows}
        json.parent.mkdir(parents=True, exist_ok=True)
        write_whole(json, orjson.dumps(kept, option=orjson.OPT_INDENT_2) + b"\n", mode=AS_UMASK_SAYS)
    return seen
