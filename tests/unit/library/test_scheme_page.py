"""docs/tutorials/add-a-scheme.md, taken literally: its package is installed, its scheme used."""

import os
import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from ttmark.gen_service.demo_model import DEMO_MODEL_PATH

PAGE = (Path(__file__).resolve().parents[3] / "docs/tutorials/add-a-scheme.md").read_text()
ROOT = Path(__file__).resolve().parents[3]


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[number]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's two files, installed into its folder `site`."""
    place = tmp_path_factory.mktemp("toy")
    (place / "toy.py").write_text(block("python"))
    (place / "pyproject.toml").write_text(block("toml"))
    options = ("--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--target", "site")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *options, "."], cwd=place, check=True)
    return place


def run(place: Path, *command: str) -> str:
    """Runs Python where the package is installed and nothing else of the page's folder is seen."""
    (work := place / "work").mkdir(exist_ok=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith("TTMARK_")}
    path = os.pathsep.join([str(place / "site"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, *command],
        cwd=work,
        env=own | {"PYTHONPATH": path, "TTMARK_KEK": "5e" * 32, "TTMARK_LEDGER_FILE": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_evaluation_measures_the_pages_scheme(place: Path) -> None:
    (words,) = re.findall(r"^ttmark (eval blocks .*)$", PAGE, re.MULTILINE)
    words = words.replace("--texts 20 --length 200", "--texts 3 --length 60")
    run(place, "-m", "ttmark.services", *words.split(), "--out", "run")
    rows = orjson.loads((place / "work/run/blocks.json").read_bytes())["data"]
    assert {row["scheme"] for row in rows} == {"toy"}


def test_library_and_detection_service_find_what_the_pages_scheme_marked(place: Path) -> None:
    # One secret: under a random one the text is now and then a loop, in which little counts.
    fixed = "import os\nos.urandom = lambda count: bytes(range(count))\n"
    shorter = block("python", 1).replace("=200", "=120")
    code = f"{fixed}{shorter}" + (
        "key.save('key.json')\n"
        "import json\n"
        "print(json.dumps({'id': '1', 'text': text}), file=open('documents.jsonl', 'w'))\n"
    )
    assert run(place, "-c", code).startswith("Watermarked: ")
    ttmark = ("-m", "ttmark.services")
    run(place, *ttmark, "keys", "import", "toy", "key.json", "--tokenizer", str(DEMO_MODEL_PATH))
    run(place, *ttmark, "detect", "--bulk", "documents.jsonl", "--out", "verdicts.jsonl", "--workers", "1")
    (verdict,) = (place / "work/verdicts.jsonl").read_text().splitlines()
    assert orjson.loads(verdict)["verdict"] == "watermarked"


def test_a_scheme_that_nobody_installed_is_named(place: Path) -> None:
    code = "from ttmark.shared.watermark import Watermark; Watermark('toy', 2); Watermark('toys', 2)"
    with pytest.raises(AssertionError, match=r"unknown scheme 'toys'; known: synthid, .*, toy"):
        run(place, "-c", code)
