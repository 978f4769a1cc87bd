"""`python -m tests.harness.seccomp_run PROFILE COMMAND [ARGUMENT ...]`: as `docker run --security-opt` would.

Reads what our profile uses; conditions on capabilities or architectures are refused. Needs libseccomp.
"""

import errno
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyseccomp

_COMPARE = {
    "SCMP_CMP_EQ": pyseccomp.EQ,
    "SCMP_CMP_NE": pyseccomp.NE,
    "SCMP_CMP_MASKED_EQ": pyseccomp.MASKED_EQ,
}
_UNKNOWN = -1  # libseccomp's __NR_SCMP_ERROR
_KEYS = {"names", "action", "args", "errnoRet", "comment"}


def read_profile(path: Path) -> dict[str, Any]:
    profile: dict[str, Any] = json.loads(path.read_text())
    for rule in profile["syscalls"]:
        if rule.keys() - _KEYS:
            raise ValueError(f"{path}: cannot apply {sorted(rule.keys() - _KEYS)}")
    return profile


def allowed(profile: dict[str, Any]) -> Iterator[str]:
    """Every system call that the profile allows, if only with some arguments."""
    for rule in profile["syscalls"]:
        if rule["action"] == "SCMP_ACT_ALLOW":
            yield from rule["names"]


def build(profile: dict[str, Any]) -> pyseccomp.SyscallFilter:
    """The profile as libseccomp's filter, for this machine's architecture alone."""
    made = pyseccomp.SyscallFilter(_action(profile["defaultAction"], profile.get("defaultErrnoRet")))
    for rule in profile["syscalls"]:
        action = _action(rule["action"], rule.get("errnoRet"))
        arguments = [_argument(argument) for argument in rule.get("args", [])]
        for name in rule["names"]:
            if _known(name):  # as Docker does: another kernel's or architecture's
                made.add_rule(action, name, *arguments)
    return made


def _action(name: str, number: int | None) -> int:
    if name == "SCMP_ACT_ERRNO":
        return int(pyseccomp.ERRNO(errno.EPERM if number is None else number))
    if name == "SCMP_ACT_ALLOW":
        return int(pyseccomp.ALLOW)
    raise ValueError(f"cannot apply {name}")


def _argument(argument: dict[str, Any]) -> pyseccomp.Arg:
    values = (argument["value"], argument.get("valueTwo", 0))
    return pyseccomp.Arg(argument["index"], _COMPARE[argument["op"]], *values)


def _known(name: str) -> bool:
    number: int = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)
    return number != _UNKNOWN


def main() -> None:
    path, *command = sys.argv[1:]
    build(read_profile(Path(path))).load()  # sets no_new_privs too
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
