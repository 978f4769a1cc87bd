"""`make gpu`: runs each part that has not gone well before, and writes one folder named after the card.

Where there is no GPU the parts run small, on the CPU: that proves that each of them starts.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.harness.gpu.parts import parts
from tests.harness.gpu.run import Result, card_name, kept, run_part


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


ROOT = Path(__file__).resolve().parents[3]
DRY = "dry-run-on-a-cpu"
SMOLLM2 = "smollm2"


def weight_bytes(model: str) -> int | None:
    """Of a model in a folder, or of SmolLM2 in the state folder; None for others."""
    folder = ROOT / ".ttmark/models" / model if model == SMOLLM2 else Path(model)
    return sum(path.stat().st_size for path in folder.glob("*.safetensors")) or None


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 0: every part went well, or was left out because vLLM is not installed."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--model", default=SMOLLM2, help="a folder, or a name")
    parser.add_argument("--vllm", type=Path, default=ROOT / ".venv-vllm/bin/python", help="Python with vLLM")
    parser.add_argument("--out", type=Path, default=ROOT / "build/gpu")
    parser.add_argument("--again", action="store_true", help="also what has gone well before")
    parser.add_argument("parts", nargs="*", help="names, or how they begin")
    options = parser.parse_args(argv)
    card = card_name()
    folder: Path = options.out / (card or DRY)
    folder.mkdir(parents=True, exist_ok=True)
    print(f"gpu: {card or 'no GPU: each part starts on the CPU, small'}; results in {folder}", flush=True)
    results: dict[str, Result] = {}
    for part in parts(options.model):
        wanted = part.name.startswith(tuple(options.parts or [""]))
        result = None if wanted and options.again else kept(folder, part)
        if result is None and wanted:
            python = options.vllm if part.vllm else Path(sys.executable)
            result = run_part(part, python, folder, on_gpu=card is not None)
            print(f"gpu: {part.name}: {result.status} ({result.seconds:.0f} s)", flush=True)
        if result is not None:
            results[part.name] = result
    weights = weight_bytes(options.model) if card else None
    (folder / "README.md").write_text(f"# {card or DRY}\n\n{page(folder, results, weights)}")
    return int(any(each.status in ("failed", "too long") for each in results.values()))


if __name__ == "__main__":
    sys.exit(main())
