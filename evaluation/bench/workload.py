"""What every system of a benchmark is asked for, its figures, and the ratios between them."""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from ttmark.evaluation.experiment_cells import SETTINGS, SamplingSetting, Setting
from ttmark.evaluation.report import Table
from ttmark.shared.tokenization import TextTokenizer

PAPER, STRICT, CHAT = (SETTINGS[name] for name in (Setting.DEFAULT, Setting.STRICT, Setting.CHAT))
_TEXT = """
A program is a list of instructions that a computer follows in order. When a function is called, the values
that are passed to it are bound to its parameters, and its body is executed in a new scope. The result is
returned to the caller. If an error occurs, an exception is raised, and the program stops unless the exception
is handled. Files are opened with a mode that says whether they are read or written. The system keeps
a table of the open files of each process, and a file is closed when it is no longer needed.
"""


@dataclass(frozen=True, slots=True)
class Workload:
    """`sequences` completions of `tokens` tokens after English prompts of `prompt_tokens` tokens each."""

    sequences: int
    tokens: int
    prompt_tokens: int = 32
    filters: SamplingSetting = PAPER

    def prompts(self, tokenizer: TextTokenizer) -> list[list[int]]:
        """Windows of one text, each begun elsewhere, all of one length so that no peer has to pad."""
        tokens = tokenizer.encode(_TEXT)
        starts = [7 * index % len(tokens) for index in range(self.sequences)]
        return [[tokens[(start + i) % len(tokens)] for i in range(self.prompt_tokens)] for start in starts]


@dataclass(frozen=True, slots=True)
class Rates:
    """Tokens per second, of the clock and of the processor.

    On a machine that does other work besides, the processor's is the figure to compare.
    """

    per_second: float
    per_cpu_second: float


@dataclass(frozen=True, slots=True)
class Measurement:
    system: str
    workload: Workload
    rates: Rates
    details: dict[str, float] = field(default_factory=dict)


class Stopwatch:
    """Wall and processor seconds since it was made, of the process and of those that it has started."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), _processor_seconds()

    def rates(self, tokens: int) -> Rates:
        wall, cpu = time.perf_counter() - self._wall, _processor_seconds() - self._cpu
        return Rates(tokens / wall, tokens / cpu)


def _processor_seconds() -> float:
    """Of this process and its living descendants, which a vLLM engine computes in."""
    total = time.process_time()
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            times = child.cpu_times()
            total += times.user + times.system
    return total


PAIRS = "ours, r = 2"
UNMARKED = "ours, no watermark"
PEERS = (
    UNMARKED,
    "transformers generate",
    "transformers generate, SynthID",
    "llama.cpp, no watermark",
)


def ratio_table(measured: Iterable[Measurement]) -> Table:
    """Our throughput, plain and of pairs under each budget, as a multiple of others'; by CPU second."""
    rates: dict[tuple[int, str], dict[str, float]] = {}
    for item in measured:
        place = (item.workload.sequences, setting(item))
        rates.setdefault(place, {})[item.system] = item.rates.per_cpu_second
    rows = [
        (
            str(sequences),
            filters,
            system,
            *(f"{rate / found[peer]:.2f}" if peer in found else "" for peer in PEERS),
        )
        for (sequences, filters), found in rates.items()
        for system, rate in found.items()
        if system.startswith((UNMARKED, PAIRS))
    ]
    columns = ("sequences", "filters", "system", *(f"over {peer}" for peer in PEERS))
    return Table("Tokens per CPU second, as a multiple", columns, tuple(rows))


def setting(item: Measurement) -> str:
    """The filters as (top-k, top-p, temperature)."""
    filters = item.workload.filters
    return f"({filters.top_k}, {filters.top_p:g}, {filters.temperature:g})"
