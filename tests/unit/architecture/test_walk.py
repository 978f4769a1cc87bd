"""How much of the code somebody has to read who follows a request."""

import re
import subprocess
import sys

import pytest

# What was asked of this code; on a quiet machine 59 and 293, 48 and 294.
MOST = {"chat": (60, 300), "detect": (50, 300)}


@pytest.mark.parametrize("name", MOST)
def test_a_request_crosses_no_more_files_than_it_did(name: str) -> None:
    command = [sys.executable, "-m", "tests.harness.walk", name]
    for _ in range(6):  # on a busy machine what runs by the clock is counted, too
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        files, changes = map(int, re.findall(r"\d+", said))
        if files <= MOST[name][0] and changes <= MOST[name][1]:
            return
    pytest.fail(said)
