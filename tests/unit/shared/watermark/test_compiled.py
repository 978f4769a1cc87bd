"""Sources in C: compiled once, for the processor that there is, and no obstacle where they cannot be."""

import errno
import platform
import subprocess
from pathlib import Path

import pytest

from ttmark.shared.watermark import compiled
from ttmark.shared.watermark.compiled import CompiledSource, InstructionSet, all_levels, usable_levels


@pytest.fixture(name="source")
def _source(tmp_path: Path) -> CompiledSource:
    if not usable_levels() or compiled.shutil.which("cc") is None:
        pytest.skip("no C compiler")
    path = tmp_path / "answer.c"
    path.write_text("int answer(void) { return 42; }\n")
    return CompiledSource.beside(path, ("-O0",))


def test_a_library_is_compiled_once_and_found_again(
    source: CompiledSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert source.load().answer() == 42
    assert [path.suffix for path in source.folder.iterdir()] == [".so"]
    monkeypatch.setattr(subprocess, "run", None)
    assert source.load().answer() == 42


def test_another_source_or_other_flags_are_another_library(source: CompiledSource) -> None:
    level = usable_levels()[0]
    names = {source.file_name(level), CompiledSource.beside(source.source, ("-O1",)).file_name(level)}
    source.source.write_text("int answer(void) { return 43; }\n")
    names.add(source.file_name(level))
    assert len(names) == 3
    assert source.load().answer() == 43


def test_where_nothing_can_be_written_it_is_compiled_for_the_process(
    source: CompiledSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = CompiledSource.compile

    def read_only(self: CompiledSource, folder: Path, level: InstructionSet) -> Path:
        if folder == self.folder:
            raise OSError(errno.EROFS, "read-only file system")
        return make(self, folder, level)

    monkeypatch.setattr(CompiledSource, "compile", read_only)
    assert source.load().answer() == 42
    assert not source.folder.exists()


@pytest.mark.parametrize("compiler", [None, "/bin/false"])
def test_without_a_compiler_that_works_there_is_a_reason(
    source: CompiledSource, monkeypatch: pytest.MonkeyPatch, compiler: str | None
) -> None:
    monkeypatch.setattr(compiled.shutil, "which", lambda _: compiler)
    with pytest.raises((FileNotFoundError, subprocess.CalledProcessError)):
        source.load()


def test_a_compiler_that_knows_fewer_instructions_compiles_for_fewer(
    source: CompiledSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    (level, *_) = usable_levels()
    newest = InstructionSet("newest", ("-mno-compiler-knows-this",), frozenset())
    monkeypatch.setattr(compiled, "usable_levels", lambda: [newest, level])
    assert source.load().answer() == 42
    assert [path.name for path in source.folder.iterdir()] == [source.file_name(level)]


def test_an_unknown_processor_has_no_level(source: CompiledSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_processor_flags", frozenset)
    with pytest.raises(OSError, match=platform.machine()):
        source.load()


def test_every_level_of_this_machine_is_compiled_for_an_image(source: CompiledSource) -> None:
    made = source.compile_all()
    assert {path.name for path in made} == {source.file_name(level) for level in all_levels()}
    assert all(path.parent == source.folder for path in made)
