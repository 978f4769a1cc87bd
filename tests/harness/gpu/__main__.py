"""`make gpu`: runs each part that has not gone well before, and writes one folder named after the card.

Where there is no GPU the parts run small, on the CPU: that proves that each of them starts.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.harness.gpu.card import card_name
from tests.harness.gpu.parts import parts
from tests.harness.gpu.run import Result, kept, run_part
from tests.harness.gpu.table import page

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
