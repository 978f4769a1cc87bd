"""Runs `ttmark` commands, each in a fork of one process, which has imported the command line alone."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from ttmark.services.startup import MODULES

EVERY = {module for modules in MODULES.values() for module in modules}


class Outcome(NamedTuple):
    code: int
    output: str
    errors: str


class ForkedCommands:
    """Asks that process, which is started upon the first command."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None

    def run(
        self,
        *arguments: str,
        folder: Path,
        absent: Collection[str] = (),
        given: str = os.devnull,
        memory: int = -1,
        **variables: str,
    ) -> Outcome:
        """One command, in a folder, without the `absent` modules, with a file as standard input, at most so
        many bytes of memory (-1: all) and no variables of ours but these; modules of a folder PYTHONPATH come
        first.
        """
        if self._server is None:
            others = {name: value for name, value in os.environ.items() if not name.startswith("TTMARK_")}
            command = [sys.executable, "-m", __name__]
            self._server = subprocess.Popen(
                command, env=others, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        asked = [arguments, str(folder), sorted(absent), given, memory, variables]
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        return Outcome(*json.loads(self._server.stdout.readline()))

    def close(self) -> None:
        if self._server is not None:
            self._server.communicate()


def _serve() -> None:
    sys.modules.update(dict.fromkeys(EVERY))  # type: ignore[arg-type] # None: an import of it fails
    import ttmark.services.settings.unknown_variables  # noqa: F401
    from ttmark.services.cli.main import app

    for line in sys.stdin:
        print(json.dumps(_outcome(app, *json.loads(line))), flush=True)


def _outcome(
    app: Any,
    arguments: list[str],
    folder: str,
    absent: list[str],
    given: str,
    memory: int,
    variables: dict[str, str],
) -> Outcome:
    with tempfile.TemporaryFile("w+") as written, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if not child:
            os.chdir(folder)
            os.environ.update(variables)
            sys.path.insert(0, variables.get("PYTHONPATH", ""))
            for number, file in enumerate((os.open(given, os.O_RDONLY), written.fileno(), errors.fileno())):
                os.dup2(file, number)
            for module in EVERY.difference(absent):
                del sys.modules[module]
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
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
        return Outcome(os.waitstatus_to_exitcode(status), written.read(), errors.read())


if __name__ == "__main__":
    _serve()
