"""The command that a result names makes it again."""

import pytest

from ttmark.evaluation.run_manifest import command_line


@pytest.mark.parametrize("where", [["--json", "a file.json"], ["--json=a file.json"], []])
def test_a_command_as_it_was_typed_names_no_file_for_the_figures(
    monkeypatch: pytest.MonkeyPatch, where: list[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["/some/bin/ttmark", "bench", *where, "core", "--seed", "1"])
    assert command_line(without="--json") == "ttmark bench core --seed 1"
