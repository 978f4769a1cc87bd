"""`python -m tests.harness.levels FOLDER`: CPU milliseconds of a model's pass as lower processors run it.

One process for each level of our kernels and each kind of matrices, with torch and oneDNN held to the same
instructions. With `--test`, pytest's arguments, tests run at that level in place of it.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import patch

ROWS = (1, 5, 8, 40)
TORCH = {
    "x86-64-v3": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    "x86-64-v4": {"ATEN_CPU_CAPABILITY": "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
    "x86-64-v4-vnni": {"ATEN_CPU_CAPABILITY": "avx512", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"},
}


def measured(folder: Path, quantization: str) -> dict[str, object]:
    import torch

    from ttmark.gen_service.engine.attention import KvCache
    from ttmark.gen_service.engine.loading import load_model
    from ttmark.gen_service.engine.settings import EngineSettings

    torch.set_num_threads(1)
    settings = EngineSettings(dtype="bfloat16", device="cpu", threads=1, quantization=quantization)  # type: ignore[arg-type]
    loaded = load_model(str(folder), settings)
    runner = loaded.acceleration.runner(loaded.model, KvCache(64), reproducible=False)

    def milliseconds(rows: int) -> float:
        began = time.process_time()
        runner.probe_once(rows)
        return 1e3 * (time.process_time() - began)

    fastest = {str(rows): round(min(milliseconds(rows) for _ in range(9)), 1) for rows in ROWS}
    return {"weights": runner.weights, **fastest}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--level", choices=TORCH)
    parser.add_argument("--quantization", default="none")
    parser.add_argument("--test", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.level is None:
        for level, environment in TORCH.items():
            for quantization in ("none", "int8", "int4"):
                command = [sys.executable, "-m", "tests.harness.levels", str(given.folder), "--level", level]
                subprocess.run([*command, "--quantization", quantization], env=os.environ | environment)
        return
    os.environ.update(TORCH[given.level])
    from ttmark.shared.watermark import compiled

    levels = compiled.usable_levels()
    lower = [level for level in levels if level.name in list(TORCH)[: list(TORCH).index(given.level) + 1]]
    with patch.object(compiled, "usable_levels", lambda: lower):
        if given.test:
            import pytest

            sys.exit(pytest.main(given.test))
        row = {"level": given.level, "asked": given.quantization}
        print(json.dumps(row | measured(given.folder, given.quantization)), flush=True)


if __name__ == "__main__":
    main()
