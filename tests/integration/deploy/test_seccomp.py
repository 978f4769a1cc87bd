"""Both services under the images' seccomp profile, by the kernel's own filter, and what it refuses."""

import errno
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.every_request import ask_everything
from tests.harness.observe.services import Bed
from tests.harness.system_calls import PROFILE

pytestmark = pytest.mark.long

try:
    from tests.harness.seccomp_run import allowed, read_profile
except (ImportError, OSError, RuntimeError) as error:  # not Linux, or without libseccomp
    pytest.skip(f"seccomp cannot be had here: {error}", allow_module_level=True)

CONFINED = [sys.executable, "-m", "tests.harness.seccomp_run", str(PROFILE)]
ROOT = PROFILE.parents[2]

CALL = """
import ctypes, json, pyseccomp, sys
libc = ctypes.CDLL(None, use_errno=True)
for name, arguments in json.loads(sys.argv[1]):
    number = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_ulong, arguments))
    print(name, *arguments, "gave", result, ctypes.get_errno(), flush=True)
"""
CLONE_NEWUSER = 0x10000000
SIGCHLD = 17
AF_ALG, AF_VSOCK, AF_PACKET, SOCK_RAW = 38, 40, 17, 3

# Arguments that succeed, or fail for another reason, where nothing forbids the call.
FORBIDDEN: list[tuple[str, list[int], int]] = [
    ("unshare", [CLONE_NEWUSER], errno.EPERM),
    ("ptrace", [0, 0, 0, 0], errno.EPERM),  # PTRACE_TRACEME
    ("clone", [CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0], errno.EPERM),
    ("clone3", [0, 0], errno.ENOSYS),
    ("setns", [0, 0], errno.EPERM),
    ("mount", [0, 0, 0, 0, 0], errno.EPERM),
    ("bpf", [0, 0, 0], errno.EPERM),
    ("keyctl", [0, 0, 0, 0, 0], errno.EPERM),
    ("perf_event_open", [0, 0, 0, 0, 0], errno.EPERM),
    ("userfaultfd", [1], errno.EPERM),
    ("io_uring_setup", [1, 0], errno.EPERM),
    ("io_uring_enter", [0, 0, 0, 0, 0, 0], errno.EPERM),
    ("kexec_load", [0, 0, 0, 0], errno.EPERM),
    ("init_module", [0, 0, 0], errno.EPERM),
    ("process_vm_readv", [1, 0, 0, 0, 0, 0], errno.EPERM),
    ("process_vm_writev", [1, 0, 0, 0, 0, 0], errno.EPERM),
    ("open_by_handle_at", [0, 0, 0], errno.EPERM),
    ("socket", [AF_ALG, 5, 0], errno.EPERM),
    ("socket", [AF_VSOCK, 1, 0], errno.EPERM),
    ("socket", [AF_PACKET, SOCK_RAW, 0], errno.EPERM),
]


def made(calls: list[tuple[str, list[int]]], *, confined: bool) -> list[str]:
    """System calls, one after another in a process of their own: a line of what each gave, and errno."""
    command = [*(CONFINED if confined else []), sys.executable, "-c", CALL, json.dumps(calls)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return run.stdout.splitlines()


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def test_forbidden_calls_are_refused() -> None:
    gave = made([(name, arguments) for name, arguments, _ in FORBIDDEN], confined=True)
    assert gave == [f"{' '.join(map(str, (name, *of)))} gave -1 {number}" for name, of, number in FORBIDDEN]


def test_the_profile_is_what_refuses_them() -> None:
    (gave,) = made([("ptrace", [0, 0, 0, 0])], confined=False)
    assert gave == "ptrace 0 0 0 0 gave 0 0"  # needs no privilege


def test_no_dangerous_call_is_allowed() -> None:
    names = set(allowed(read_profile(PROFILE)))
    refused = {name for name, *_ in FORBIDDEN} - {"clone", "socket"}  # allowed with other arguments
    others = {"finit_module", "kexec_file_load", "pidfd_getfd", "chroot", "pivot_root", "add_key", "mknod"}
    assert names & (refused | others) == set()


@pytest.mark.timeout(600)
def test_both_services_serve_every_kind_of_request_under_the_profile(tmp_path: Path) -> None:
    with Bed(tmp_path, launcher=CONFINED) as bed:
        assert all(ask_everything(bed).values())
        for name in ("gen", "detect"):
            status = Path(f"/proc/{bed.processes[name].pid}/status").read_text()
            assert "Seccomp:\t2" in status  # a filter is at work
            assert "NoNewPrivs:\t1" in status
        readers = children(bed.processes["detect"].pid)
        assert readers
        for reader in readers:  # a process that reads files limits itself, which the profile must let it
            assert "Seccomp_filters:\t2" in Path(f"/proc/{reader}/status").read_text()  # its own, too
            assert re.search(r"Max file size +0 ", Path(f"/proc/{reader}/limits").read_text())
        assert [bed.stop(name) for name in ("gen", "detect")] == [0, 0]
