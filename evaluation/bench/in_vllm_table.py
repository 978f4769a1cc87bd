"""The table of `bench vllm`."""

import statistics
from collections.abc import Callable, Sequence

from ttmark.evaluation.bench.workload import VLLM, Measurement, ratio, setting
from ttmark.evaluation.report.result import Table

UNFILTERED = "vLLM, no filters"
UNMARKED_IN_VLLM = "in vLLM, no watermark"
_REFERENCES = (VLLM, UNFILTERED, UNMARKED_IN_VLLM)

Items = Sequence[Measurement]


def ratios(seen: Items) -> Table:
    """Median tokens a second of each system and workload, from least to most, and its ratio to references.

    What could not be measured is a note.
    """
    found: dict[tuple[int, int, str], dict[str, list[Measurement]]] = {}
    for item in seen:
        if item.rates is not None:
            work = item.workload
            place = found.setdefault((work.sequences, work.prompt_tokens, setting(item)), {})
            place.setdefault(item.system, []).append(item)
    rows = []
    for (sequences, prompt, filters), systems in found.items():
        speeds = {name: statistics.median(_speeds(items)) for name, items in systems.items()}
        for name, items in systems.items():
            against = [ratio(speeds[name], speeds.get(other)) for other in _REFERENCES]
            spread = f"{min(_speeds(items)):.1f} to {max(_speeds(items)):.1f}"
            per_token = _median(items, "seconds_per_token", lambda seconds: f"{1e3 * seconds:.1f}")
            decided = _median(items, "share_outside_forward", lambda share: f"{100 * share:.0f} %")
            processor = statistics.median(
                item.rates.per_cpu_second for item in items if item.rates is not None
            )
            rates = (f"{speeds[name]:.1f}", spread, f"{processor:.1f}")
            rows.append((str(sequences), str(prompt), filters, name, *rates, *against, per_token, decided))
    columns = (
        "sequences",
        "prompt",
        "filters",
        "system",
        "tokens/s",
        "least to most",
        "tokens/CPU s",
        *(f"over {name}" for name in _REFERENCES),
        "ms a token",
        "outside of forwards",
    )
    failed = {f"{item.system}: {item.error}": None for item in seen if item.error is not None}
    return Table("Inside vLLM, median of the rounds", columns, tuple(rows), tuple(failed))


def _speeds(items: Items) -> list[float]:
    return [item.rates.per_second for item in items if item.rates is not None]


def _median(items: Items, detail: str, shown: Callable[[float], str]) -> str:
    values = [item.details[detail] for item in items if detail in item.details]
    return shown(statistics.median(values)) if values else ""
