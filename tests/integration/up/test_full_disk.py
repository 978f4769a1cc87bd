"""A full disk or a kill at every operation on files: what follows works, nothing acknowledged is lost."""

import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.full_disk import COMPILER, FullDisk, Outcome, full_disk, preloaded
from tests.integration.up.conftest import UpRunner
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.services.composition.key_access import KEY_REFRESH_SECONDS
from ttmark.shared.client import Client

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler, cc")
OLD, NEW = "01" * 32, "02" * 32
WORK: dict[str, tuple[str, ...]] = {
    "create a key": ("keys", "create", "k", "--tokenizer", str(DEMO_MODEL_PATH)),
    "rotate it": ("keys", "rotate", "k"),
    "promote its new version": ("keys", "promote", "k", "2"),
    "create a token": ("tokens", "create", "--label", "new"),
    "revoke a token": ("tokens", "revoke", "--yes"),
    "wrap all records anew": ("keys", "rewrap"),
    "make a backup": ("keys", "backup", "backup"),
}
_FILES = {"TTMARK_AUDIT_FOLDER": ".ttmark/audit", "TTMARK_LEDGER_FILE": ".ttmark/ledger"}
_TTMARK = " ".join([*map("=".join, _FILES.items()), sys.executable, "-m ttmark.services"])
_CREATE, _VERIFY = f"{_TTMARK} tokens create", f"{_TTMARK} audit verify store"
# Every fifth operation in the fast tier: one of the few that write one file.
both = pytest.mark.parametrize(
    ("kill", "step"),
    [
        pytest.param(False, 5, id="full"),
        pytest.param(False, 1, id="full everywhere", marks=pytest.mark.slow),
        pytest.param(True, 1, id="killed", marks=pytest.mark.slow),
    ],
)


@pytest.fixture(scope="module")
def under(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disk")


@pytest.fixture(scope="module")
def disk(under: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullDisk]:
    scratch = tmp_path_factory.mktemp("scratch")
    with full_disk(
        "tests.harness.state_folder_steps", under, scratch, TTMARK_AUDIT_FOLDER="audit"
    ) as running:
        yield running


def new_folder(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "audit").mkdir(parents=True)
    return folder


def copied(folder: Path, name: str) -> Path:
    target = folder.with_name(name)
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(folder, target))


def shown(disk: FullDisk, folder: Path) -> dict[str, Any]:
    outcome = disk.run("show", folder=folder)
    assert outcome.code == 0, outcome.said
    return dict(json.loads(outcome.said))


def in_order(outcome: Outcome, *, kill: bool) -> bool:
    """Done, killed, or refused in one line that says why."""
    refused = outcome.code in (1, 2) and outcome.last_line.startswith("ttmark: ")
    refused = refused and "disk I/O error" not in outcome.said
    return (outcome.code == 0 or refused or (kill and outcome.code == -9)) and "Traceback" not in outcome.said


@pytest.mark.long
@both
def test_after_a_first_start_that_failed_anywhere_the_next_one_works(disk, under, *, kill, step):
    folder = new_folder(under / "first")
    whole = disk.run("start", folder=folder)
    assert (whole.code, whole.said) == (0, "")
    keys = shown(disk, folder)["keys"]
    for at in range(1, whole.operations + 1, step):
        first = disk.run("start", folder=new_folder(folder), at=at, kill=kill)
        assert in_order(first, kill=kill), (at, first)
        before = {path: path.read_bytes() for path in (folder / ".ttmark").glob("[ct][ao]*[nm]")}
        second = disk.run("start", folder=folder)
        assert second.code == 0, (at, first, second)
        assert shown(disk, folder)["keys"] == keys
        assert all(path.read_bytes() == content for path, content in before.items())
        token = (folder / ".ttmark/token").read_text().strip()
        assert disk.run("authenticate", token, folder=folder).code == 0, at
        closed = {path.stat().st_mode & 0o077 for path in (folder / ".ttmark").iterdir()}
        assert closed == {0}


@both
@pytest.mark.parametrize(
    "work",
    [name if name == "create a token" else pytest.param(name, marks=pytest.mark.slow) for name in WORK],
)
def test_a_command_on_keys_that_fails_anywhere_is_done_or_not_begun(disk, under, work, *, kill, step):
    folder, command = begun(disk, under, work)
    before = shown(disk, folder)
    whole = disk.run("command", *command, folder=copied(folder, "whole"))
    assert whole.code == 0, whole.said
    after = shown(disk, folder.with_name("whole"))
    assert after != before
    for at in range(1, whole.operations + 1, step):
        here = copied(folder, "here")
        outcome = disk.run("command", *command, folder=here, at=at, kill=kill)
        assert in_order(outcome, kill=kill), (at, outcome)
        left = shown(disk, here)
        if outcome.code == 0:
            assert left == after, (at, outcome)
        elif work != "wrap all records anew":  # which goes from record to record
            assert all(left[part] in (before[part], after[part]) for part in left), (at, outcome, left)
        if work == "create a token" and outcome.code == 0:
            (token,) = (line for line in outcome.said.splitlines() if line.startswith("ttm_"))
            assert disk.run("authenticate", token, folder=here).code == 0
        again = disk.run("command", *command, folder=here)
        if left["keys"] == before["keys"] and not left["backup"]:
            assert again.code == 0, (at, outcome, again)


def begun(disk: FullDisk, under: Path, work: str) -> tuple[Path, tuple[str, ...]]:
    """A folder as the commands before leave it, and the command with what it takes from them."""
    folder = new_folder(under / "begun")
    (folder / ".ttmark").mkdir(mode=0o700)
    (folder / ".ttmark/kek").write_text(f"{OLD}\n")
    command: tuple[str, ...] = ()
    token = ""
    for name, command in WORK.items():
        if command[0:2] == ("tokens", "revoke"):
            command += (token.split("_")[1],)
        if command[1] == "rewrap":
            (folder / ".ttmark/kek").write_text(f"{NEW}\n{OLD}\n")
        if name == work:
            break
        outcome = disk.run("command", *command, folder=folder)
        assert outcome.code == 0, outcome.said
        token = outcome.said.strip() if command[:2] == ("tokens", "create") else token
    return folder, command


@pytest.mark.long
def test_a_running_service_answers_on_a_full_disk_and_says_afterwards_what_it_could_not_write(
    run_up: UpRunner, tmp_path: Path
) -> None:
    """Its log, its ledger, its audit trail and its key store are all on that disk."""
    (run_up.state / "audit").mkdir(parents=True, mode=0o700)
    flag = tmp_path / "full"
    up = run_up(**_FILES, **preloaded(tmp_path, run_up.state, flag))
    up.wait_for("Press Ctrl-C")
    tokens = [(up.state / "token").read_text().strip(), up.type(_CREATE).strip()]  # the second: not seen yet
    flag.touch()
    heard = 0
    # After the first so old is what is known of tokens and keys that it is read anew.
    for pause in (KEY_REFRESH_SECONDS + 1, 0.4):
        for token in tokens:
            with (
                Client(f"http://127.0.0.1:{up.gen_port}", token) as generation,
                Client(f"http://127.0.0.1:{up.detect_port}", token) as detection,
            ):
                for _ in range(3):
                    answer = generation.complete({"model": "demo", "prompt": "On", "max_tokens": 30})
                    detection.detect(answer.choices[0].text)
                    heard += 1
        time.sleep(pause)
    metrics = httpx.get(f"http://127.0.0.1:{up.gen_port}/metrics").text
    assert "ttmark_ledger_unsaved_records 1.0" in metrics
    flag.unlink()
    assert up.interrupt() == 0
    trail = [
        json.loads(line)["event"]
        for path in (up.state / "audit").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    lost = sum(event["events"] for event in trail if event["action"] == "audit.lost")
    assert lost >= 3 * heard  # each is a use of a key, its end, and a detection
    assert "in order" in up.type(_VERIFY)
