"""Runs `ttmark` commands where libraries cannot be imported, each in a process of its own.

Reads a JSON list of [modules that are not there, arguments], writes one of [exit code, stdout, stderr]. The
command line is imported once, where all modules of all commands are lacking; each command is a fork of that.
"""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

Outcome = tuple[int, str, str]


def main() -> None:
    """All commands of standard input."""
    cases: list[tuple[list[str], list[str]]] = json.load(sys.stdin)
    every = {module for absent, _ in cases for module in absent}
    sys.modules.update(dict.fromkeys(every))  # type: ignore[arg-type] # None: an import of it fails
    from ttmark.services.cli.main import app

    json.dump([_outcome(app, every, *case) for case in cases], sys.stdout)


def _outcome(app: Any, every: set[str], absent: Sequence[str], arguments: Sequence[str]) -> Outcome:
    with tempfile.TemporaryFile("w+") as written, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if not child:
            os.dup2(written.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            for module in every - set(absent):
                del sys.modules[module]
            code: Any = 1
            try:
                app(arguments, prog_name="ttmark")
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        written.seek(0)
        errors.seek(0)
        return os.waitstatus_to_exitcode(status), written.read(), errors.read()


if __name__ == "__main__":
    main()
