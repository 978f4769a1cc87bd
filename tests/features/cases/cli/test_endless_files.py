"""A public key that never ends is refused."""

from pathlib import Path

import pytest

from tests.harness.forked_commands import ForkedCommands
from tests.harness.raw_server import HEAD, endless, talking
from tests.unit.services.cli.test_endless_files import MEMORY


@pytest.mark.timeout(120)
def test_a_public_key_without_end_is_refused_too(commands: ForkedCommands, tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text("{}")
    with talking(endless(HEAD + b"\r\n", b" " * 2**16)) as host:
        asked = ("case", "verify", "case.json", "--url", f"http://{host}")
        ended = commands.run(*asked, folder=tmp_path, memory=MEMORY)
    assert ended.code == 1
    assert "its answer has more than 10000 bytes" in ended.errors
