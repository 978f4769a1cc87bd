"""A file that matters is whole or absent, on the disk once it is there, and its owner's from the start."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ttmark.shared.whole_file import NotWritten, make_folder, put_in_place, whole_file, write_whole


def fail(monkeypatch: pytest.MonkeyPatch, name: str, number: int = errno.ENOSPC) -> None:
    def fault(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, name, fault)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("call", ["open", "fsync", "replace", "link"])
def test_what_fails_leaves_what_was_there_and_names_the_file(tmp_path, monkeypatch, call, new):
    path = tmp_path / "kek"
    if not new:
        path.write_bytes(b"old")
    fail(monkeypatch, call)
    if call == ("link" if not new else "replace"):
        write_whole(path, b"new", new=new)  # does not need it
        return
    with pytest.raises(NotWritten) as refused:
        write_whole(path, b"new", new=new)
    assert str(refused.value) == f"cannot write {path}: No space left on device"
    assert names(tmp_path) == ([] if new else ["kek"])
    assert new or path.read_bytes() == b"old"


def test_an_error_in_the_block_leaves_nothing(tmp_path: Path) -> None:
    def half() -> None:
        with whole_file(tmp_path / "backup", new=True) as file:
            file.write(b"half of it")
            raise KeyError

    with pytest.raises(KeyError):
        half()
    assert names(tmp_path) == []


def test_the_file_is_there_once_it_is_whole_and_on_the_disk(tmp_path, monkeypatch):
    done: list[str] = []

    def noted(name: str, call: Callable[..., Any]) -> None:
        def note(*arguments: Any, **options: Any) -> Any:
            what = arguments[0]
            folder = isinstance(what, int) and stat.S_ISDIR(os.fstat(what).st_mode)
            done.append(f"{name} of the folder" if folder else name)
            return call(*arguments, **options)

        monkeypatch.setattr(os, name, note)

    noted("fsync", os.fsync)
    noted("replace", os.replace)
    with whole_file(tmp_path / "x") as file:
        file.write(b"a" * 100_000)
        assert not (tmp_path / "x").exists()
    assert (tmp_path / "x").stat().st_size == 100_000
    assert done == ["fsync", "replace", "fsync of the folder"]


def test_nobody_else_can_read_it_from_its_first_moment_on(tmp_path: Path) -> None:
    with whole_file(tmp_path / "token") as file:
        assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_replaces_nothing_even_what_came_meanwhile(tmp_path, monkeypatch, links):
    path = tmp_path / "kek"
    if not links:
        fail(monkeypatch, "link", errno.EPERM)

    def overtaken() -> None:
        with whole_file(path, new=True) as file:
            file.write(b"mine")
            path.write_bytes(b"another process's")

    with pytest.raises(NotWritten, match="File exists"):
        overtaken()
    assert path.read_bytes() == b"another process's"
    assert names(tmp_path) == ["kek"]


def test_a_file_system_without_links_has_new_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail(monkeypatch, "link", errno.EPERM)
    write_whole(tmp_path / "kek", b"mine", new=True)
    assert names(tmp_path) == ["kek"]


def test_a_finished_file_takes_a_place_or_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part, path = tmp_path / "part", tmp_path / "out"
    part.write_bytes(b"new")
    path.write_bytes(b"old")
    with monkeypatch.context() as full:
        fail(full, "fsync")
        with pytest.raises(NotWritten, match="out: No space left"):
            put_in_place(part, path)
    assert (part.read_bytes(), path.read_bytes()) == (b"new", b"old")
    put_in_place(part, path)
    assert (names(tmp_path), path.read_bytes()) == (["out"], b"new")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotWritten, match=f"cannot write {tmp_path}/file/state: Not a directory"):
        make_folder(tmp_path / "file/state")
