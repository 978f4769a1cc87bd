"""docs/tutorials/add-a-scheme.md, taken literally: its package is installed, its scheme used."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.imports import ROOT
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH

pytestmark = pytest.mark.long

PAGE = (ROOT / "docs/tutorials/add-a-scheme.md").read_text()
USE = """
import json, os, sys
from typer.testing import CliRunner
from ttmark.services.cli.main import app
from ttmark.shared.watermark.schemes.watermark import Watermark

def command(words):
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 0, (words, done.output, done.exception)

asked = json.load(sys.stdin)
# One secret: under a random one the text is now and then a loop, in which little counts.
os.urandom = lambda count: bytes(range(2, count + 2))
exec(asked["code"])
key.save("key.json")
print(json.dumps({"id": "1", "text": text}), file=open("documents.jsonl", "w"))
for words in asked["commands"]:
    command(words)
try:
    Watermark("toys", 2)
except ValueError as error:
    print(error)
"""


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[number]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's package, installed."""
    place = tmp_path_factory.mktemp("toy")
    (place / "toy.py").write_text(block("python"))
    (place / "pyproject.toml").write_text(block("toml"))
    options = ("--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--target", "site")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *options, "."], cwd=place, check=True)
    return place / "site"


def test_library_evaluation_and_detection_service_use_the_pages_scheme(site: Path, tmp_path: Path) -> None:
    (evaluation,) = re.findall(r"^ttmark (eval results .*)$", PAGE, re.MULTILINE)
    asked: dict[str, Any] = {
        "code": block("python", 1).replace("=200", "=120"),
        "commands": [
            evaluation.replace("--texts 20 --length 200", "--texts 3 --length 60") + " --out run",
            f"keys import toy key.json --tokenizer {DEMO_MODEL_PATH}",
            "detect --bulk documents.jsonl --out verdicts.jsonl --workers 1",
        ],
    }
    own = {name: value for name, value in os.environ.items() if not name.startswith("TTMARK_")}
    path = os.pathsep.join([str(site), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", USE],
        input=json.dumps(asked),
        cwd=tmp_path,
        env=own | {"PYTHONPATH": path, "TTMARK_KEK": "5e" * 32, "TTMARK_LEDGER_FILE": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("Watermarked: ")
    assert re.search(r"unknown scheme 'toys'; known: synthid, .*, toy", done.stdout)
    rows = json.loads((tmp_path / "run/results.json").read_bytes())["data"]
    assert {row["arm"] for row in rows} == {"toy:2"}
    (verdict,) = (tmp_path / "verdicts.jsonl").read_text().splitlines()
    assert json.loads(verdict)["verdict"] == "watermarked"
