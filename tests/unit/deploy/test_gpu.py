"""`make gpu`: each part is a command that is there, and what has gone well is not run again."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer

from ttmark.evaluation.bench.in_vllm import bench_app


@pytest.mark.parametrize("with_gpu", [True, False])
def test_each_part_that_is_left_is_a_command(root: Path, tmp_path: Path, with_gpu: bool) -> None:
    for path in (".venv-vllm/bin/python", "build/gpu/vllm-8.json"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()
    shutil.copy(root / "Makefile", tmp_path)
    command = ["make", "--dry-run", "gpu", "--assume-old=.venv/.dev", f"GPU={'smi' * with_gpu}"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    benches: Any = typer.main.get_command(bench_app())
    names = []
    for words in re.findall(r" bench (.*)", said):
        name, *options = shlex.split(words)
        params = benches.commands[name].make_context(name, options).params
        names.append((name, params["sequences"], params["model"]))
    ours, in_vllm = ([(name, count) for count in (1, 8, 32, 128)] for name in ("generate", "vllm"))
    due = [*ours, *(part for part in in_vllm if part != ("vllm", 8))]
    model = "smollm2" if with_gpu else "demo"
    assert names == [(name, str(count if with_gpu else 2), model) for name, count in due]
