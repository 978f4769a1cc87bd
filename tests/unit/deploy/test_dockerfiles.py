"""The Dockerfiles, linted; `make stack-test` builds them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCKERFILES = ("gen.Dockerfile", "detect.Dockerfile", "vllm.Dockerfile")


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
        re.fullmatch(r"(python|vllm/vllm-openai):v?\d+\.\d+\.\d+(-[\w-]+)?", base)
        for base in re.findall(r"^FROM (\S+)", text, re.M)
    )
    assert re.findall(r"^USER (\d+)", text, re.M)[-1] == "10001"
    assert "HEALTHCHECK" in text


def test_vllms_image_keeps_what_it_has_and_takes_the_rest_as_locked(root: Path, tmp_path: Path) -> None:
    text = (root / "deploy/docker/vllm.Dockerfile").read_text()
    step = re.search(r"awk .*?(?= > /tmp/constraints.txt)", text, re.DOTALL)
    assert step
    command = step[0].replace("\\\n", "").replace("/tmp/there.txt", "there.txt")
    (tmp_path / "there.txt").write_text("pyyaml==6.0.1\ntyping-extensions==4.1\n")
    (tmp_path / "constraints.txt").write_text(
        "# Locked\nPyYAML==6.0.3\nray==2.60.0\ntyping_extensions==4.15.0\n"
    )
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["pyyaml==6.0.1", "typing-extensions==4.1", "ray==2.60.0"]
