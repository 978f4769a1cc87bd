"""Whatever is done to the records of a chain whose head the store knows is found."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ttmark.services.features.audit.chain import Chain
from ttmark.services.features.audit.chain_check import Problem, verify_folder
from ttmark.services.features.audit.export import Closing, export_lines, verify_export
from ttmark.services.features.audit.record import NO_RECORD, Anchor, Head, record_line
from ttmark.services.features.audit.segments import segments
from ttmark.shared.signed_files.signed_file import CaseKey

COUNT = 20
Lines = list[bytes]
CHAIN = "gen.0123abcd"


def written(count: int, chain: str = CHAIN) -> tuple[Lines, Head]:
    """A chain as its writer leaves it."""
    lines, head = Lines(), Head(chain, 0, NO_RECORD)
    for number in range(count):
        event = {"action": "key.generate", "key_id": f"k{number % 3}", "tokens": number}
        line, head = record_line(head, f"2026-11-22T12:00:00.{number:06d}+00:00", event)
        lines.append(line)
    return lines, head


def first_problem(folder: Path, lines: Lines, head: Head) -> Problem | None:
    """As `ttmark audit verify store` would find it."""
    (folder / f"{CHAIN}.{1:012d}.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    return next(iter(verify_folder(segments(folder), {head.chain: Anchor(head)}).problems), None)


def forged(lines: Lines, at: int) -> Lines:
    """An event exchanged by somebody who knows the format: all hashes from there on made anew."""
    kept, head = lines[:at], Head(CHAIN, at, _hash(lines[at - 1]) if at else NO_RECORD)
    for number in range(at, len(lines)):
        line, head = record_line(head, f"2026-11-22T12:00:00.{number:06d}+00:00", {"action": "forged"})
        kept.append(line)
    return kept


def _hash(line: bytes) -> str:
    return line[-66:-2].decode()


def changed(lines: Lines, at: int, drawn: random.Random) -> Lines:
    line = bytearray(lines[at])
    line[drawn.randrange(len(line))] ^= 1 << drawn.randrange(8)
    return [*lines[:at], bytes(line), *lines[at + 1 :]]


def swapped(lines: Lines, at: int, drawn: random.Random) -> Lines:
    other = drawn.choice([number for number in range(len(lines)) if number != at])
    result = list(lines)
    result[at], result[other] = result[other], result[at]
    return result


EDITS: dict[str, Callable[[Lines, int, random.Random], Lines]] = {
    "changed": changed,
    "dropped": lambda lines, at, _: lines[:at] + lines[at + 1 :],
    "swapped": swapped,
    "repeated": lambda lines, at, _: [*lines[: at + 1], lines[at], *lines[at + 1 :]],
    "repeated elsewhere": lambda lines, at, drawn: [
        *lines[: (to := drawn.randrange(len(lines) + 1))],
        lines[at],
        *lines[to:],
    ],
    "put in": lambda lines, at, _: [*lines[:at], written(at + 1)[0][at][:-1] + b" }", *lines[at:]],
    "put in from another chain": lambda lines, at, _: [
        *lines[:at],
        written(at + 1, "detect.4567cdef")[0][at],
        *lines[at:],
    ],
    "cut at the end": lambda lines, at, _: lines[:at],
    "cut at the beginning": lambda lines, at, _: lines[at + 1 :],
    "written anew": lambda lines, at, _: forged(lines, at),
    "written anew and longer": lambda lines, at, _: forged([*lines, b""], at),
    "blanked": lambda lines, at, _: [*lines[:at], b"", *lines[at + 1 :]],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit")


@pytest.mark.parametrize("edit", EDITS)
@given(at=st.integers(0, COUNT - 1), seed=st.integers(0, 2**32 - 1))
def test_any_edit_of_any_record_is_found(folder: Path, edit: str, at: int, seed: int) -> None:
    lines, head = written(COUNT)
    assert first_problem(folder, lines, head) is None
    problem = first_problem(folder, EDITS[edit](lines, at, random.Random(seed)), head)
    assert problem is not None
    assert problem.chain == CHAIN
    # Who makes all hashes anew is found at the record that the store knows.
    assert problem.sequence <= (COUNT if "anew" in edit else at + 2)


def exported(folder: Path, key: CaseKey | None) -> Lines:
    for writer in ("gen", "detect"):
        chain = Chain(folder, writer)
        for number in range(COUNT // 2):
            chain.append({"action": "key.detect", "tokens": number})
        chain.close()
    return list(export_lines(segments(folder), None, None, None if key is None else key.sign))


@pytest.mark.parametrize("edit", EDITS)
def test_any_edit_of_an_export_is_found(tmp_path: Path, edit: str) -> None:
    key, drawn = CaseKey.generate(), random.Random(1)
    lines = exported(tmp_path, key)
    whole = verify_export(lines, key.public)
    assert isinstance(whole, Closing)
    assert whole.export.records == COUNT
    for at in range(COUNT):
        assert isinstance(verify_export(EDITS[edit](lines, at, drawn), key.public), Problem), at


def test_an_export_of_somebody_else_is_refused(tmp_path: Path) -> None:
    lines = exported(tmp_path, CaseKey.generate())
    assert isinstance(verify_export(lines, None), Closing)
    assert isinstance(verify_export(lines, CaseKey.generate().public), Problem)
    unsigned = list(export_lines(segments(tmp_path), None, None, None))
    assert isinstance(verify_export(unsigned, None), Closing)
    assert isinstance(verify_export(unsigned, CaseKey.generate().public), Problem)


def test_chains_of_an_export_do_not_mix(tmp_path: Path) -> None:
    lines = exported(tmp_path, None)
    mixed = [*lines[COUNT // 2 : -1], *lines[: COUNT // 2], lines[-1]]
    assert isinstance(verify_export(mixed, None), Problem)
