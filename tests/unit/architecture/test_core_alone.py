"""The core stands alone: its tests pass in a copy that has no feature at all."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.features import features
from tests.harness.imports import ROOT

pytestmark = pytest.mark.long


@pytest.mark.timeout(1_500)
def test_the_tests_of_the_core_pass_without_any_feature(tmp_path: Path) -> None:
    """Those of a minute or less; all features are gone at once, with their tests."""
    tree = tmp_path / "tree"
    left_out = shutil.ignore_patterns(".*", "build", "__pycache__", "node_modules")
    shutil.copytree(ROOT, tree, symlinks=True, ignore=left_out)
    folders = [path for path in tree.glob("*/features/*") if path.is_dir()]
    assert len({path.name for path in folders}) >= len(features())
    for folder in folders:
        shutil.rmtree(folder)
    options = "-m pytest -c pyproject.toml --rootdir . -n0 -q --tb=line -p no:schemathesis"
    chosen = ["-o", f"cache_dir={ROOT}/.pytest_cache", "-m", "not slow and not long"]
    tests = [f"tests/unit/{folder}" for folder in ("shared", "gen_service", "detect_service")]
    ran = subprocess.run(
        [sys.executable, *options.split(), *chosen, *tests],
        env=os.environ | {"PYTHONPATH": str(tree)},
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
    assert int(re.findall(r"(\d+) passed", ran.stdout)[-1]) > 1_500
