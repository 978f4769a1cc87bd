"""What every system of a benchmark is asked for: the same prompts, lengths and filters."""

import time
from dataclasses import dataclass, field

from shared.tokenization import TextTokenizer

PAPER = {"top_k": 50, "top_p": 0.95, "temperature": 1.0}
STRICT = {"top_k": 20, "top_p": 0.8, "temperature": 0.7}


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
    filters: dict[str, float] = field(default_factory=lambda: dict(PAPER))

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
    """One system on one workload; `error` stands in the place of figures that could not be had."""

    system: str
    workload: Workload
    rates: Rates | None = None
    details: dict[str, float] = field(default_factory=dict)
    error: str | None = None


class Stopwatch:
    """Wall and processor seconds of the process since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def rates(self, tokens: int) -> Rates:
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return Rates(tokens / wall, tokens / cpu)
