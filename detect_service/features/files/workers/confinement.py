"""What a process that reads strangers' files may still ask of the kernel; it gives up the rest by itself.

Seccomp leaves the system calls that reading needs, Landlock the folders of Python and of libraries. All else
fails, and does not end the process: a library that tries more than it needs goes on without, so that good
files are read with the libraries of tomorrow, and whoever has taken the process over gains nothing by trying.
"""

import ctypes
import errno
import os
import platform
import resource
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

# Names, and numbers on x86-64 and on aarch64; -1: not there.
_CALLS = """
read 0 63  write 1 64  close 3 57  open 2 -1  openat 257 56  lseek 8 62  pread64 17 67  getdents64 217 61
stat 4 -1  lstat 6 -1  fstat 5 80  newfstatat 262 79  statx 332 291  access 21 -1  faccessat 269 48
readlink 89 -1  readlinkat 267 78  getcwd 79 17  brk 12 214  mmap 9 222  mprotect 10 226  munmap 11 215
mremap 25 216  madvise 28 233  futex 202 98  sched_yield 24 124  sched_getaffinity 204 123  rseq 334 293
rt_sigaction 13 134  rt_sigprocmask 14 135  rt_sigreturn 15 139  sigaltstack 131 132  restart_syscall 219 128
getpid 39 172  gettid 186 178  getrusage 98 165  prlimit64 302 261  sysinfo 99 179  getrandom 318 278
gettimeofday 96 169  clock_gettime 228 113  exit 60 93  exit_group 231 94
"""
_WRITES, _WHOLE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0xFFFFFFFF
# Which arguments of a call are looked at, which of their bits, and what these have to be.
_ARGUMENTS = {
    "open": [(1, _WRITES, 0)],
    "openat": [(2, _WRITES, 0)],
    "prlimit64": [(0, _WHOLE, 0), (1, _WHOLE, resource.RLIMIT_CPU)],  # its own limit, anew for each file
}
# The column above, what the kernel calls the machine (linux/audit.h), and the number of `seccomp`.
_MACHINES = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}
_MACHINE = _MACHINES.get(platform.machine()) if sys.platform == "linux" and sys.maxsize > 2**32 else None

_LOAD, _AND, _EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06  # instructions (linux/bpf_common.h)
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_REFUSE = _FAIL | errno.EPERM
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ, _ALL_RIGHTS = 0b1100, (1 << 13) - 1  # files and folders; the first version's
_NO_NEW_PRIVILEGES = 38
_LIBRARY = ctypes.CDLL(None, use_errno=True)


def lacking() -> list[str]:
    """Those of `seccomp` and `Landlock` that this machine, its kernel or container does not give."""
    if _MACHINE is None:
        return ["seccomp", "Landlock"]
    asked = {
        "seccomp": (_MACHINE[2], 2, 0, struct.pack("I", _FAIL)),
        "Landlock": (_CREATE_RULESET, None, 0, 1),
    }
    return [name for name, (number, *arguments) in asked.items() if _answer(number, *arguments) < 0]


def confine() -> None:
    """Gives up what reading does not need, for good, in all threads. Raises OSError: it is refused."""
    missing = lacking()
    if _MACHINE is None:
        return
    _LIBRARY.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if "Landlock" not in missing:
        libraries = [folder for folder in sys.path if folder.endswith("-packages")]
        _see_only([Path(os.__file__).parent, "/usr", "/lib", "/lib64", *libraries])
    if "seccomp" not in missing:
        column, machine, seccomp = _MACHINE
        instructions = [struct.pack("HBBI", *instruction) for instruction in _program(column, machine)]
        program = ctypes.create_string_buffer(b"".join(instructions))
        _call(seccomp, 1, 1, struct.pack("HP", len(instructions), ctypes.addressof(program)))


def _see_only(folders: list[Path | str]) -> None:
    """Nothing else can be opened: no file of the service, and nothing in `/proc` about other processes."""
    rules = _call(_CREATE_RULESET, struct.pack("Q", _ALL_RIGHTS), 8, 0)
    for folder in folders:
        with suppress(FileNotFoundError):
            place = os.open(folder, os.O_PATH)
            _call(_ADD_RULE, rules, 1, struct.pack("=Qi", _READ, place), 0)
            os.close(place)
    _call(_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _program(column: int, machine: int) -> Iterator[tuple[int, int, int, int]]:
    """Instructions: code, how many to pass over if equal and if not, operand."""
    yield from [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, machine), (_RETURN, 0, 0, _REFUSE), (_LOAD, 0, 0, 0)]
    words = iter(_CALLS.split())
    for call in zip(words, words, words, strict=True):
        looked_at = _ARGUMENTS.get(call[0], [])
        yield _EQUAL, 0, 4 * len(looked_at) + 1, int(call[1 + column]) & _WHOLE
        for argument, bits, value in looked_at:
            yield from [(_LOAD, 0, 0, 16 + 8 * argument), (_AND, 0, 0, bits), (_EQUAL, 1, 0, value)]
            yield _RETURN, 0, 0, _REFUSE
        yield _RETURN, 0, 0, _ALLOW
    yield _RETURN, 0, 0, _REFUSE


def _answer(number: int, *arguments: object) -> int:
    answer: int = _LIBRARY.syscall(ctypes.c_long(number), *arguments)
    return answer


def _call(number: int, *arguments: object) -> int:
    if (answer := _answer(number, *arguments)) < 0:
        raise OSError(ctypes.get_errno(), "the kernel refuses to confine the process")
    return answer
