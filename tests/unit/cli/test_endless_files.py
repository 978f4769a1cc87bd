"""A file that never ends is refused, by whatever command reads it."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from ttmark.shared.cases.signed_file import CaseKey

MEMORY = 2 * 2**30


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "arguments",
    [
        ["case", "verify", "/dev/zero", "--key", "key.pem"],
        ["case", "verify", "-", "--key", "key.pem"],
        ["case", "verify", "case.json", "--key", "/dev/zero"],
    ],
)
def test_a_device_is_refused_before_memory_is_full(tmp_path: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "ttmark.services"]
    (tmp_path / "key.pem").write_text(CaseKey.generate().public.pem())
    (tmp_path / "case.json").write_text("{}")
    with Path("/dev/zero").open("rb") as zeros:
        ended = subprocess.run(
            [*command, *arguments],
            cwd=tmp_path,
            stdin=zeros,
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        )
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.endswith("it has more than 256 MiB")
