"""`make gpu`: what has gone well is not run again, what takes too long ends, shares are of figures."""

import json
import sys
from pathlib import Path

import pytest

from tests.harness.gpu.__main__ import main, page, share_of_floor
from tests.harness.gpu.parts import Part
from tests.harness.gpu.run import MemoryWatch, card_name, kept, run_part

PYTHON = Path(sys.executable)
WELL = Part("well", (), ("-c", "open('{json}', 'w').write('{}')"))


def test_a_part_that_went_well_is_kept_and_one_that_failed_is_not(tmp_path: Path) -> None:
    bad = Part("bad", (), ("-c", "raise SystemExit(3)"))
    for part in (WELL, bad):
        run_part(part, PYTHON, tmp_path, on_gpu=False)
    found = kept(tmp_path, WELL)
    assert found is not None
    assert found.status == "ok"
    assert (tmp_path / "well.json").read_text() == "{}"
    assert kept(tmp_path, bad) is None


@pytest.mark.long
def test_a_part_that_takes_too_long_ends_with_all_its_processes(tmp_path: Path) -> None:
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    result = run_part(Part("long", (), ("-c", script)), PYTHON, tmp_path, on_gpu=False, limit=1)
    assert result.status == "too long"
    assert result.seconds < 30


def test_what_is_not_installed_is_left_out_and_said(tmp_path: Path) -> None:
    assert run_part(WELL, tmp_path / "no-python", tmp_path, on_gpu=False).status == "left out"


def test_a_second_run_goes_on_where_the_first_ended(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # without nvidia-smi
    command = ["--out", str(tmp_path), "bandwidth"]
    assert main(command) == 0
    assert "gpu: bandwidth: ok" in capsys.readouterr().out
    assert main(command) == 0
    assert "bandwidth: ok" not in capsys.readouterr().out
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert "| bandwidth | ok |" in (folder / "README.md").read_text()


def test_the_card_names_the_folder_and_its_memory_is_watched(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert card_name() is None
    tool = tmp_path / "nvidia-smi"
    tool.write_text('#!/bin/sh\ncase "$1" in *name*) echo "NVIDIA X100 80GB";; *) echo 1234;; esac\n')
    tool.chmod(0o755)
    assert card_name() == "nvidia-x100-80gb"
    with MemoryWatch(0.01) as memory:
        pass
    assert memory.most_mib == 1234


def test_the_share_of_the_floor_is_readings_of_the_weights_against_the_memorys_speed(tmp_path: Path) -> None:
    assert share_of_floor(800.0, 8, 10**9, 10**12) == pytest.approx(0.1)
    row = {"name": "ours", "rates": {"per_second": 800.0}, "workload": {"sequences": 8}, "error": None}
    (tmp_path / "well.json").write_text(json.dumps({"rows": [row]}))
    (tmp_path / "bandwidth.json").write_text(json.dumps({"bytes_per_second": 1e12}))
    result = run_part(Part("well", (), ("-c", "")), PYTHON, tmp_path, on_gpu=False)
    assert "| well | ours | 800.0 | 10% |" in page(tmp_path, {"well": result}, 10**9)
    assert "| well | ours | 800.0 |  |" in page(tmp_path, {"well": result}, None)
