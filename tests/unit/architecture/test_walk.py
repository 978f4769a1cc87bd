"""How much of the code somebody has to read who follows a request."""

import re
import subprocess
import sys
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.long


class Crossed(NamedTuple):
    """Lines of the files crossed and of the functions called, modules of features, changes of file."""

    lines: int
    functions: int
    optional: int
    changes: int


# May be lowered, and no path crosses a module of a feature that was not asked for. How often a
# chat changes files depends on the processor's kernels: one commit had 297 on one machine, 324 on another.
MOST = {
    "chat": Crossed(12_000, 3_400, 0, 325),
    "detect": Crossed(7_700, 2_450, 0, 302),
    "detect-text": Crossed(8_700, 2_700, 0, 270),
}


def test_a_request_crosses_no_more_code_than_it_did() -> None:
    command = [sys.executable, "-m", "tests.harness.walk", *MOST]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    line = re.compile(
        r"^([\w-]+): \d+ files, (\d+) lines, (\d+) of functions called, "
        r"(\d+) modules of optional features, (\d+) changes",
        re.M,
    )
    counted = {name: Crossed(*map(int, numbers)) for name, *numbers in line.findall(said)}
    assert counted.keys() == MOST.keys()
    for name, crossed in counted.items():
        assert all(now <= most for now, most in zip(crossed, MOST[name], strict=True)), said
