"""What others wrote to tell whether a service speaks OpenAI's API."""

import json
import os
import subprocess
import sys

import pytest

from tests.harness.imports import ROOT
from tests.harness.outside_packages import with_pip

pytestmark = pytest.mark.long

ASKING = ROOT / "tests/harness/open_responses.py"
# What does not apply, and why.
NOT_OURS = {"image-input": "no model here sees pictures: a 400 that names the part"}


def test_answers_and_events_are_those_of_the_open_responses_specification(scripted, pytestconfig) -> None:
    folder = with_pip(pytestconfig.cache, "openresponses-types==2.4.0")
    command = [sys.executable, ASKING, f"{scripted.url}/v1", "author", "own-template"]
    path = os.environ | {"PYTHONPATH": str(folder)}
    said = subprocess.run(command, env=path, capture_output=True, text=True, check=True, timeout=200)
    found = json.loads(said.stdout)
    assert {name: wrong for name, wrong in found.items() if wrong and name not in NOT_OURS} == {}
    assert all("400" in found[name][0] for name in NOT_OURS)
