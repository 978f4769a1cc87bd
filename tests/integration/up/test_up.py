"""`ttmark up`: the first thing that a new user runs."""

import os
import re
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI
from typer.testing import CliRunner

from tests.harness.observe.services import free_port
from tests.integration.up.conftest import NO_INDEX
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.services.cli import up
from ttmark.services.cli.main import app
from ttmark.services.cli.up import stop_on_signals
from ttmark.services.local.processes import LocalServices
from ttmark.services.local.provision import LocalSetup
from ttmark.services.startup import StartupError

VERDICTS = ["watermarked", "not_detected", "not_detected"]
CHAT = shutil.ignore_patterns("tokenizer_config.json")  # which holds the chat template


def verdicts(text: str) -> list[str]:
    return re.findall(r"\b(watermarked|not_detected|too_short)\b(?= +│)", text)


def test_a_service_that_ends_is_named_with_its_log_which_is_for_its_owner_alone(tmp_path: Path) -> None:
    setup = LocalSetup("demo", "demo", DEMO_MODEL_PATH, "sqlite:///none/keys.db", "k", "l", tmp_path)
    (tmp_path / "gen.log").touch(0o666)
    (tmp_path / "token").write_text("none")
    with LocalServices(setup, free_port(), free_port()) as services:
        with pytest.raises(StartupError, match=r"^the (generation|detection) service ended: ") as error:
            services.wait()
        name = "gen" if "generation" in str(error.value) else "detect"
        assert str(error.value).endswith(f"(its log is {services.log_file(name)})")
        assert [services.log_file(one).stat().st_mode & 0o777 for one in ("gen", "detect")] == [0o600, 0o600]


def test_a_text_goes_round_and_ctrl_c_stops_both_services(run_up, tmp_path: Path) -> None:
    """A model in a folder, as a user's own is; other tests start the services with `demo` by its name."""
    model = shutil.copytree(DEMO_MODEL_PATH, tmp_path / "mine", ignore=CHAT)
    up = run_up(model=str(model))
    up.wait_for("Press Ctrl-C")
    text = up.text()
    assert verdicts(text) == VERDICTS
    p_value = float(re.search(r"watermarked +│ +([\d.e-]+)", text)[1])
    assert p_value <= 1e-5

    commands = up.commands()
    assert up.type(commands["Generate"]).endswith("data: [DONE]\n\n")
    assert '"verdict"' in up.type(commands["Detect"])
    assert "watermarked" in up.type(commands["The same with `ttmark`"])
    assert up.type(commands["Python, after `pip install openai`"], sys.executable, "-c").strip()

    token = (up.state / "token").read_text().strip()
    client = OpenAI(base_url=f"http://127.0.0.1:{up.gen_port}/v1", api_key=token)
    plain = client.completions.create(model="mine", prompt="The file", max_tokens=20, seed=1, temperature=1)
    streamed = client.completions.create(
        model="mine", prompt="The file", max_tokens=20, seed=1, temperature=1, stream=True
    )
    assert "".join(chunk.choices[0].text for chunk in streamed if chunk.choices) == plain.choices[0].text

    assert up.end(signal.SIGINT) == 0
    assert up.text().rstrip().endswith("stopped")


@pytest.mark.parametrize(
    ("before", "within"), [(signal.SIG_IGN, signal.SIG_IGN), (signal.SIG_DFL, signal.default_int_handler)]
)
def test_a_closed_terminal_is_as_ctrl_c_and_under_nohup_ends_nothing(before: Any, within: Any) -> None:
    previous = signal.signal(signal.SIGHUP, before)
    try:
        with stop_on_signals():
            assert signal.getsignal(signal.SIGHUP) == within
            assert signal.getsignal(signal.SIGTERM) == signal.default_int_handler
    finally:
        signal.signal(signal.SIGHUP, previous)


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """`ttmark up` in this process, as it ends before it starts a service: its last line."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, model: str | Path = "demo", gen_port: int | None = None, code: int = 1) -> str:
        ports = ["--gen-port", str(gen_port or free_port()), "--detect-port", str(free_port())]
        result = CliRunner().invoke(app, ["up", "--model", str(model), *ports, *arguments])
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result.output.strip().splitlines()[-1]

    return run


def test_who_asks_for_smollm2_by_name_gets_no_other_model(refused, monkeypatch) -> None:
    for name, value in NO_INDEX.items():
        monkeypatch.setenv(name, value)
    assert refused(model="smollm2").startswith("ttmark: model smollm2 cannot be fetched")


@pytest.mark.parametrize(("name", "content"), [("kek", ""), ("kek", "01" * 31), ("case.pem", "")])
def test_a_half_written_secret_of_an_earlier_release_is_named(refused, tmp_path, name, content):
    (tmp_path / ".ttmark").mkdir()
    (tmp_path / ".ttmark" / name).write_text(content)
    assert re.search(rf"^ttmark: \.ttmark/{name}: .*; remove it", refused())
    assert (tmp_path / ".ttmark" / name).read_text() == content


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--model", "no/such/folder"], 1, r"^ttmark: unknown model 'no/such/folder'"),
        (["--store-url", "redis://127.0.0.1:1/0"], 1, r"^ttmark: .*127\.0\.0\.1:1"),
        (["--store-url", "ftp://x"], 2, "^ttmark: Invalid value for '--store-url': the key store is a URL"),
    ],
)
def test_what_cannot_work_ends_with_one_clear_line(refused, arguments, code, message):
    assert re.search(message, refused(*arguments, code=code))  # the last --model counts


def test_ports_and_the_state_folder_are_looked_at_before_the_model_is_fetched(refused, monkeypatch, tmp_path):
    monkeypatch.setattr(up, "get_smollm2", None)  # which would be called
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(model="smollm2", gen_port=port)
        assert line.startswith(f"ttmark: cannot listen on 127.0.0.1:{port}")
        same = refused("--detect-port", str(port), model="smollm2", gen_port=port, code=2)
    assert f"both are {port}: each service needs a port of its own" in same
    state = tmp_path / "state"
    for mode, who in ((0o775, -1), (0o757, -1), (0o1777, -1), (0o700, 65_534)):
        state.mkdir()
        state.chmod(mode)
        if who > 0 and os.getuid() == 0:
            os.chown(state, who, who)
        line = refused("--state", str(state), model="smollm2") if who < 0 or os.getuid() == 0 else None
        assert line is None or line.startswith(f"ttmark: others can write to {state}: "), (mode, who)
        state.rmdir()


def test_a_folder_without_a_part_of_a_model_ends_with_one_clear_line(refused, tmp_path):
    (tmp_path / "model").mkdir()
    assert re.search(r"^ttmark: model .*no tokenizer\.json", refused(model=tmp_path / "model"))
    shutil.copy(DEMO_MODEL_PATH / "tokenizer.json", tmp_path / "model")
    assert re.search(r"^ttmark: model .*no config\.json", refused(model=tmp_path / "model"))
