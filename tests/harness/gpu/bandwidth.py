"""How fast the card reads its memory: what a step cannot be faster than, for the weights that it reads."""

import argparse
import json
import time
from pathlib import Path

import torch

REPEATS = 20


def read_rate(size: int, device: torch.device) -> float:
    """Bytes a second: the best of REPEATS sums over `size` bytes, each of which is read once."""
    values = torch.ones(size // 2, dtype=torch.bfloat16, device=device)
    best = float("inf")
    for _ in range(REPEATS):
        _wait(device)
        start = time.perf_counter()
        values.sum()
        _wait(device)
        best = min(best, time.perf_counter() - start)
    return size / best


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main() -> None:
    """Writes the rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rate = read_rate(options.bytes, device)
    options.json.write_text(json.dumps({"device": device.type, "bytes_per_second": rate}) + "\n")
    print(f"{rate / 1e9:.1f} GB/s")


if __name__ == "__main__":
    main()
