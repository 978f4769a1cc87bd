"""`bench generate`: throughput of our engine beside transformers, in one run on one machine."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from evaluation.bench.ours import OurEngine
from evaluation.bench.peers import Transformers, continuous_batching
from evaluation.bench.workload import PAPER, STRICT, Measurement, Workload
from gen_service.engine import EngineSettings

_STEP_ROWS = 2048
_PATIENCE_SECONDS = 120.0
BUDGETS = (2, 4, 8, 16, 32)
SUPPORTS = (1, 2, 4, 8, 16, 32, 50)


def _engine(model: str, sequences: int, dtype: str, threads: int | None) -> OurEngine:
    settings = EngineSettings(
        dtype=dtype, threads=threads, max_sequences=sequences, step_rows=_STEP_ROWS, max_waiting=sequences
    )
    return OurEngine(model, settings)


def beside_transformers(
    model: str,
    sequences: Sequence[int],
    tokens: int,
    *,
    dtype: str = "float32",
    threads: int | None = None,
    block_sizes: Sequence[int] = (0, 1, 2, 3),
) -> Iterator[Measurement]:
    """Ours at each block size (0: no watermark) with the paper's and with strict filters, then the peers."""
    ours = _engine(model, max(sequences), dtype, threads)
    for count in sequences:
        workload = Workload(count, tokens)
        ours.measure(replace(workload, tokens=4), 2)
        for filters in (PAPER, STRICT):
            for block_size in block_sizes:
                yield ours.measure(replace(workload, filters=filters), block_size)
    ours.close()
    peers = Transformers(model, dtype)
    for count in sequences:
        workload = Workload(count, tokens)
        peers.generate(replace(workload, tokens=4), synthid=False)
        yield peers.generate(workload, synthid=False)
        yield peers.generate(workload, synthid=True)
        yield continuous_batching(model, dtype, threads, workload, _PATIENCE_SECONDS)


def by_support(
    model: str, sequences: int, tokens: int, *, dtype: str = "float32", threads: int | None = None
) -> Iterator[Measurement]:
    """Run time against the number of candidates m (the paper's Figure 4), with and without a budget of 8."""
    ours = _engine(model, sequences, dtype, threads)
    ours.measure(Workload(sequences, 4), 2)
    for candidates in SUPPORTS:
        filters = {"top_k": float(candidates), "top_p": 1.0, "temperature": 1.0}
        workload = Workload(sequences, tokens, filters=filters)
        for max_branches in (None, 8):
            yield ours.measure(workload, 2, max_branches=max_branches)
    ours.close()


def by_budget(
    model: str, sequences: int, tokens: int, *, dtype: str = "float32", threads: int | None = None
) -> Iterator[Measurement]:
    """Mean z and throughput of pairs for each branch budget, and without one."""
    ours = _engine(model, sequences, dtype, threads)
    ours.measure(Workload(sequences, 4), 2)
    for max_branches in (*BUDGETS, None):
        yield ours.measure(Workload(sequences, tokens), 2, max_branches=max_branches)
    ours.close()


def machine() -> str:
    """One line on what the figures were measured with."""
    capability = torch.backends.cpu.get_cpu_capability()
    return f"torch {torch.__version__}, {torch.get_num_threads()} threads, {capability}"
