"""Commands that are printed to be typed: as short as they can be, and right in any shell."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ttmark.services.cli import next_steps
from ttmark.services.local.processes import LocalServices
from ttmark.services.local.provision import LocalSetup

SETUP = LocalSetup(
    model="demo",
    model_id="demo",
    tokenizer_folder=Path("model"),
    store_url="sqlite:///x",
    key_id="default",
    other_key_id="other",
    state=Path(".ttmark"),
)


def steps(setup: LocalSetup = SETUP, gen_port: int = 8000, *, chat: bool = True) -> str:
    return next_steps.next_steps(LocalServices(setup, gen_port, 8001), chat=chat)


def test_commands_are_as_short_as_they_can_be_and_quoted(monkeypatch, tmp_path):
    assert "generate --chat 'What makes a good breakfast?' > text.txt" in steps()
    assert "generate 'The old lighthouse stood' > text.txt" in steps(chat=False)
    assert "--url" not in steps()
    assert "--token" not in steps()
    assert steps(gen_port=9000).count("--url http://127.0.0.1:9000") == 1
    text = steps(replace(SETUP, state=Path("my state")))
    assert "$(cat 'my state/token')" in text
    assert "open('my state/token')" in text


@pytest.mark.parametrize("found", [True, False])
def test_the_program_is_named_as_it_can_be_typed(monkeypatch, tmp_path, found):
    script = tmp_path / "bin/ttmark"
    script.parent.mkdir()
    script.write_text("")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    monkeypatch.setenv("PATH", str(script.parent) if found else "/nowhere")
    monkeypatch.chdir(tmp_path)
    assert next_steps._program() == ("ttmark" if found else "bin/ttmark")
    script.unlink()
    assert shlex.split(next_steps._program()) == [sys.executable, "-m", "ttmark.services"]


def test_the_public_page_is_shown_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "/check" not in steps()
    plain = steps()
    monkeypatch.setenv("TTMARK_PUBLIC", "true")
    line = "  http://127.0.0.1:8001/check  is the public page\n"
    assert steps().replace(line, "") == plain
    assert line in steps()
