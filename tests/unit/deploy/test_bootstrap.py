"""What `deploy/bootstrap.sh` asks pip for, with a Python that writes its arguments down."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

RECORDING_PYTHON = """#!/bin/sh
case "$1 $2" in
    "-m venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    "-m pip") echo "$*" >> pip.log ;;
    "-c import torch"*) exit "${TORCH_EXIT:-1}" ;;
esac
"""


@pytest.fixture
def bootstrap(root: Path, tmp_path: Path):
    shutil.copytree(root / "deploy", tmp_path / "deploy", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "constraints.txt").write_text("torch==2.13.0\nnumpy==2.1\n")
    python = tmp_path / "python"
    python.write_text(RECORDING_PYTHON)
    python.chmod(0o755)

    def run(**variables: str) -> list[str]:
        environment = {k: v for k, v in os.environ.items() if k != "TTMARK_TORCH_INDEX"}
        environment |= {"PYTHON": str(python), **variables}
        subprocess.run(["bash", tmp_path / "deploy/bootstrap.sh", "run"], env=environment, check=True)
        return (tmp_path / "pip.log").read_text().splitlines()

    return run


def test_torch_comes_first_by_its_exact_version_from_the_default_index(bootstrap):
    torch, project = bootstrap()
    assert torch.endswith("-c constraints.txt torch")
    assert project.endswith("-c constraints.txt -e .[gen,bulk,eval]")


def test_torch_alone_comes_from_the_index_that_is_named(bootstrap):
    torch, project = bootstrap(TTMARK_TORCH_INDEX="https://index.example/cpu")
    assert torch.endswith("--index-url https://index.example/cpu torch")
    assert "index" not in project


def test_a_torch_that_is_there_is_not_replaced(bootstrap, tmp_path):
    (project,) = bootstrap(TORCH_EXIT="0")
    assert project.endswith("-c .venv/constraints.txt -e .[gen,bulk,eval]")
    assert (tmp_path / ".venv/constraints.txt").read_text() == "numpy==2.1\n"
