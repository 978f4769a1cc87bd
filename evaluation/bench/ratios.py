"""What the figures of one benchmark run say about each other."""

from collections.abc import Iterable

from evaluation.bench.workload import Measurement
from evaluation.report.table import Table

PAIRS = "ours, r = 2"
UNMARKED = "ours, no watermark"
PEERS = (UNMARKED, "transformers generate", "transformers generate, SynthID")


def ratio_table(measured: Iterable[Measurement]) -> Table:
    """Throughput of pairs, under each budget, as a multiple of what they are compared with; by CPU second."""
    rates: dict[tuple[int, str], dict[str, float]] = {}
    for item in measured:
        if item.rates is not None:
            place = (item.workload.sequences, setting(item))
            rates.setdefault(place, {})[item.system] = item.rates.per_cpu_second
    rows = [
        (str(sequences), filters, system, *(_ratio(rate, found.get(peer)) for peer in PEERS))
        for (sequences, filters), found in rates.items()
        for system, rate in found.items()
        if system.startswith(PAIRS)
    ]
    columns = ("sequences", "filters", "system", *(f"over {peer}" for peer in PEERS))
    return Table("Tokens per CPU second, as a multiple", columns, tuple(rows))


def setting(item: Measurement) -> str:
    """The filters as (top-k, top-p, temperature)."""
    filters = item.workload.filters
    return f"({filters['top_k']:g}, {filters['top_p']:g}, {filters['temperature']:g})"


def _ratio(rate: float, other: float | None) -> str:
    return f"{rate / other:.2f}" if other else ""
