"""A file that never ends is refused, by whatever command reads it."""

from pathlib import Path

import pytest

from tests.harness.forked_commands import ForkedCommands
from ttmark.shared.signed_files.signed_file import CaseKey

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
def test_a_device_is_refused_before_memory_is_full(
    commands: ForkedCommands, tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "key.pem").write_text(CaseKey.generate().public.pem())
    (tmp_path / "case.json").write_text("{}")
    ended = commands.run(*arguments, folder=tmp_path, given="/dev/zero", memory=MEMORY)
    assert ended.code == 1
    (line,) = ended.errors.splitlines()
    assert line.endswith("it has more than 256 MiB")
