"""The page of a run: each part, and how near the engine comes to reading the weights alone."""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.harness.gpu.run import Result


def page(folder: Path, results: Mapping[str, Result], weight_bytes: int | None) -> str:
    """Markdown.

    Args:
        folder: has the figures of the parts.
        results: by the part's name.
        weight_bytes: of the model that was measured; None: no share is told.
    """
    lines = ["| part | status | seconds | memory, MiB |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {each.status} | {each.seconds:.0f} | {each.memory_mib or ''} |"
        for name, each in results.items()
    ]
    speeds = [line for name in results for line in _speeds(folder, name, weight_bytes)]
    if speeds:
        head = "| part | system | tokens a second | share of the floor |"
        lines += ["", head, "|---|---|---|---|", *speeds]
        lines += [
            "",
            "The floor: the weights are read once for a token of each sequence, at `bandwidth`'s rate.",
        ]
    return "\n".join(lines) + "\n"


def share_of_floor(rate: float, sequences: int, weight_bytes: int, bytes_per_second: float) -> float:
    """How much of the memory's speed reads the weights, where each token of all sequences takes one reading.

    Args:
        rate: tokens a second, of all sequences.
    """
    return rate / sequences * weight_bytes / bytes_per_second


def _speeds(folder: Path, name: str, weight_bytes: int | None) -> list[str]:
    path, bandwidth = folder / f"{name}.json", folder / "bandwidth.json"
    rows = json.loads(path.read_text()).get("rows", []) if path.exists() else []
    lines = []
    for row in rows:
        rate, share = row["rates"]["per_second"], ""
        if weight_bytes and bandwidth.exists():
            read = json.loads(bandwidth.read_text())["bytes_per_second"]
            share = f"{share_of_floor(rate, row['workload']['sequences'], weight_bytes, read):.0%}"
        lines.append(f"| {name} | {row['name']} | {rate:.1f} | {share} |")
    return lines
