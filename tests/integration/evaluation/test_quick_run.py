"""`ttmark eval all --quick`: every experiment on the demo model, in a quarter of an hour."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from ttmark.evaluation.experiments.registry import EXPERIMENTS
from ttmark.evaluation.report.result import Result

pytestmark = pytest.mark.long

LIMIT_CPU_SECONDS = 15 * 60
"""On one core; a machine that does other work besides takes longer by the clock."""


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_every_experiment_of_a_quick_run_ends_within_a_quarter_of_an_hour(tmp_path: Path) -> None:
    before = _cpu_seconds()
    command = [sys.executable, "-m", "ttmark.services", "eval", "all", "--quick", "--threads", "1"]
    subprocess.run([*command, "--out", str(tmp_path)], check=True, stdout=subprocess.DEVNULL)
    assert _cpu_seconds() - before < LIMIT_CPU_SECONDS
    for experiment in EXPERIMENTS:
        result = Result.load(tmp_path / f"{experiment.name}.json")
        assert all(table.rows for table in result.tables)
        assert all((tmp_path / f"{figure.name}.png").is_file() for figure in result.figures)


def _cpu_seconds() -> float:
    """Of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
