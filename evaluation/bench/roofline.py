"""`bench roofline`: how near the engine's steps come to what matrix products and memory allow."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Annotated, ClassVar

import torch
import typer

from ttmark.evaluation.bench.figures import show
from ttmark.evaluation.bench.generation import EngineOptions, Tokens
from ttmark.evaluation.bench.ours import OurEngine
from ttmark.evaluation.bench.products import Products, ProductTimes, read_bandwidth, usual_rows
from ttmark.evaluation.bench.watched_runner import StepTime, WatchedAcceleration
from ttmark.evaluation.bench.workload import CHAT, Workload
from ttmark.evaluation.options import Json
from ttmark.evaluation.report.result import Table, table_by
from ttmark.gen_service.engine import Engine, EngineSettings
from ttmark.gen_service.engine.loading import load_model

_MOST_ROWS = 256
_WARM_UP_TOKENS = 4
_SERVICE_BRANCHES = 8
_BLOCKS = {0: "plain", 2: "pairs"}


@dataclass(frozen=True, slots=True)
class Share:
    """Steps of one number of sequences; medians of processor seconds.

    Attributes:
        rows: of a pass, the mean.
        seconds: of a step.
        products: the products' part of a step, of the same rows and measured right behind it.
        floor: the part that reading the weights once takes.
    """

    name: str
    sequences: int
    rows: float
    seconds: float
    products: float
    floor: float

    @classmethod
    def of(cls, name: str, sequences: int, steps: Sequence[StepTime], floor_seconds: float) -> "Share":
        """The medians over steps.

        Raises:
            ValueError: there are no steps.
        """
        if not steps:
            raise ValueError("no steps were measured; ask for more tokens")
        seconds = median(step.seconds for step in steps)
        return cls(
            name,
            sequences,
            fmean(step.rows for step in steps),
            seconds,
            median(step.products / step.seconds for step in steps),
            floor_seconds / seconds,
        )


@dataclass(frozen=True, slots=True)
class Floor:
    """A pass over `rows` rows: seconds of its products in each layout, and of reading the weights.

    Attributes:
        packed: for oneDNN; None where the model's are not.
    """

    name: str
    rows: int
    products: float
    inputs_first: float
    outputs_first: float
    packed: float | None
    memory: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline(EngineOptions):
    """The engine's steps on a CPU beside their matrix products alone, and beside reading the weights."""

    name: ClassVar[str] = "roofline"

    sequences: Annotated[str, typer.Option(help="Numbers of sequences, with commas.")] = "1,8,32"
    tokens: Tokens = 48
    json: Json = None

    def run(self) -> None:
        with self.folder() as folder:
            floors, shares = self._measured(folder)
        show([_floor_table(floors), _share_table(shares)], [*floors, *shares], self.json)

    def _measured(self, folder: str) -> tuple[list[Floor], list[Share]]:
        counts = [int(count) for count in self.sequences.split(",")]
        settings = EngineSettings(
            device="cpu",
            dtype=self.dtype,
            threads=self.threads,
            max_sequences=max(counts),
            max_waiting=max(counts),
            max_branches=_SERVICE_BRANCHES,
            reproducible=False,
        )
        loaded = load_model(folder, settings)
        watched = WatchedAcceleration(
            loaded.acceleration.kernels,
            packed=loaded.acceleration.packed,
            fused=loaded.acceleration.fused,
        )
        engine = Engine(replace(loaded, acceleration=watched), settings)
        (runner,) = watched.made
        with torch.inference_mode():
            products = Products(runner.products, packed=runner.packed)
            times = [products.measure(rows) for rows in usual_rows(_MOST_ROWS)]
        memory = products.weight_bytes / read_bandwidth()
        ours = OurEngine(engine)
        try:
            shares: list[Share] = []
            for count, block_size in self._settings(counts):
                workload = Workload(count, self.tokens, filters=dict(CHAT))
                ours.measure(replace(workload, tokens=_WARM_UP_TOKENS), block_size)
                runner.watch(products)
                ours.measure(workload, block_size)
                shares.append(Share.of(_BLOCKS[block_size], count, runner.watch(None), memory))
        finally:
            ours.close()
        return [_floor(each, memory) for each in times], shares

    def _settings(self, counts: Sequence[int]) -> Iterator[tuple[int, int]]:
        for count in counts:
            for block_size in _BLOCKS:
                typer.echo(f"{count} x {_BLOCKS[block_size]}", err=True)
                yield count, block_size


def _floor(times: ProductTimes, memory: float) -> Floor:
    inputs_first, outputs_first, *rest = times.layouts
    packed = rest[0] if rest else None
    return Floor(f"{times.rows} rows", times.rows, times.best, inputs_first, outputs_first, packed, memory)


def _floor_table(floors: Sequence[Floor]) -> Table:
    columns = {
        "rows": lambda item: str(item.rows),
        "products, ms": lambda item: f"{1e3 * item.products:.2f}",
        "[in, out] only": lambda item: f"{1e3 * item.inputs_first:.2f}",
        "[out, in] only": lambda item: f"{1e3 * item.outputs_first:.2f}",
        "packed only": lambda item: "-" if item.packed is None else f"{1e3 * item.packed:.2f}",
        "weights read once, ms": lambda item: f"{1e3 * item.memory:.2f}",
    }
    note = "Processor time of all matrix products of a pass; each in its faster layout, or all in one."
    return table_by("Matrix products alone", floors, columns, (note,))


def _share_table(shares: Sequence[Share]) -> Table:
    columns = {
        "sequences": lambda item: str(item.sequences),
        "blocks": lambda item: item.name,
        "rows": lambda item: f"{item.rows:.1f}",
        "step, ms": lambda item: f"{1e3 * item.seconds:.2f}",
        "products' share": lambda item: f"{item.products:.2f}",
        "memory's share": lambda item: f"{item.floor:.2f}",
    }
    notes = (
        "Medians of processor time (rows: mean); products run right behind each pass, at its rows.",
        "Chat sampling (top-k 50, top-p 0.9, T 0.7), at most 8 branches, passes not reproducible.",
    )
    return table_by("A step of the engine", shares, columns, notes)
