"""What others wrote to tell whether a service speaks OpenAI's API."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract.openai.test_tools import scripted
from tests.harness.outside_packages import with_npm, with_pip

__all__ = ["scripted"]

pytestmark = pytest.mark.long

ASKING = Path(__file__).parents[2] / "harness/open_responses.py"
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


def test_compatcanary_finds_the_service_compatible(smollm2: Any, pytestconfig: Any, tmp_path: Path) -> None:
    folder = with_npm(pytestconfig.cache, "compatcanary@0.2.2")
    report = tmp_path / "report.json"
    command = [folder / "node_modules/.bin/compatcanary", "scan", "--base-url", f"{smollm2.url}/v1"]
    options = ["--model", "tiny", "--timeout", "200000", "--format", "json", "--output", report]
    key = {"OPENAI_API_KEY": "author"}
    subprocess.run([*command, *options], env=os.environ | key, check=True, timeout=290)
    results = json.loads(report.read_text())["results"]
    assert [(each["id"], each["status"]) for each in results] == [(each["id"], "pass") for each in results]
    assert len(results) == 7
