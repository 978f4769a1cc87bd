"""How much of the code somebody has to read who follows a request."""

import re
import subprocess
import sys

import pytest

# What was reached, and a little room, as threads meet a little differently each time; lower it when it falls.
MOST = {"chat": (58, 345), "detect": (49, 315)}


@pytest.mark.parametrize("name", MOST)
def test_a_request_crosses_no_more_files_than_it_did(name: str) -> None:
    command = [sys.executable, "-m", "tests.harness.walk", name]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    files, changes = map(int, re.findall(r"\d+", said))
    assert files <= MOST[name][0], said
    assert changes <= MOST[name][1], said
