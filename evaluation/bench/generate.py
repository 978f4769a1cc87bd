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
_MEASURED_ROWS = 512
ADAPTIVE = "ours, r = 2, b by load"
BUDGETS = (2, 4, 8, 16, 32)
_BUDGETS_BESIDE_PEERS = (4, 8)
SUPPORTS = (1, 2, 4, 8, 16, 32, 50)


def _engine(
    model: str, sequences: int, dtype: str, threads: int | None, *, adaptive: bool = False
) -> OurEngine:
    settings = EngineSettings(
        dtype=dtype,
        threads=threads,
        max_sequences=sequences,
        step_rows=_STEP_ROWS,
        max_waiting=sequences,
        adaptive_branches=adaptive,
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
    filters: Sequence[dict[str, float]] = (PAPER, STRICT),
) -> Iterator[Measurement]:
    """Ours and the peers side by side, one number of sequences and one set of filters after the other.

    Ours: each block size (0: no watermark), pairs with a budget of 4 and of 8 branches, and pairs with the
    budget that follows the load. What belongs to one comparison is measured within minutes of each other.
    """
    ours = _engine(model, max(sequences), dtype, threads)
    adaptive = _engine(model, max(sequences), dtype, threads, adaptive=True)
    peers = Transformers(model, dtype)
    for count in sequences:
        for chosen in filters:
            workload = Workload(count, tokens, filters=dict(chosen))
            warm_up = replace(workload, tokens=4)
            ours.measure(warm_up, 2)
            adaptive.measure(warm_up, 2)
            for block_size in block_sizes:
                yield ours.measure(workload, block_size)
            for budget in _BUDGETS_BESIDE_PEERS:
                yield ours.measure(workload, 2, max_branches=budget)
            yield replace(adaptive.measure(workload, 2), system=ADAPTIVE)
            peers.generate(warm_up, synthid=False)
            yield peers.generate(workload, synthid=False)
            yield peers.generate(workload, synthid=True)
        yield continuous_batching(model, dtype, threads, Workload(count, tokens), _PATIENCE_SECONDS)
    ours.close()
    adaptive.close()


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
    for filters in (PAPER, STRICT):
        for max_branches in (*BUDGETS, None):
            workload = Workload(sequences, tokens, filters=dict(filters))
            yield ours.measure(workload, 2, max_branches=max_branches)
    ours.close()


def by_rows(model: str, *, dtype: str = "float32", threads: int | None = None) -> Iterator[tuple[int, float]]:
    """Rows of a pass without a prefix, and the processor seconds that it takes."""
    engine = _engine(model, 1, dtype, threads)
    curve = engine.cost_curve(_MEASURED_ROWS)
    yield from zip(curve.rows, curve.seconds, strict=True)


def machine() -> str:
    """One line on what the figures were measured with."""
    capability = torch.backends.cpu.get_cpu_capability()
    return f"torch {torch.__version__}, {torch.get_num_threads()} threads, {capability}"
