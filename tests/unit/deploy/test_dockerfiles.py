"""The Dockerfiles: linted, and their steps replayed (marker slow)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCKERFILES = ("gen.Dockerfile", "detect.Dockerfile")


@pytest.mark.parametrize("name", DOCKERFILES)
def test_hadolint_finds_nothing(root: Path, name: str) -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    result = subprocess.run(
        [hadolint, "--no-color", root / "deploy/docker" / name], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", DOCKERFILES)
def test_the_base_is_pinned_and_the_process_is_not_root(root: Path, name: str) -> None:
    text = (root / "deploy/docker" / name).read_text()
    assert all(
        re.fullmatch(r"python:\d+\.\d+\.\d+-[\w-]+", base) for base in re.findall(r"^FROM (\S+)", text, re.M)
    )
    assert re.findall(r"^USER (\d+)", text, re.M)[-1] == "10001"
    assert "HEALTHCHECK" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCKERFILES)
def test_every_step_of_the_image_runs_and_the_service_is_importable(root: Path, name: str) -> None:
    result = subprocess.run(
        [sys.executable, root / "tests/harness/replay_dockerfiles.py", root / "deploy/docker" / name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
