"""`ttmark models`: the models that need no hub."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from ttmark.gen_service.smollm2 import SMOLLM2
from ttmark.services.cli.key_store import print_json, tell
from ttmark.services.cli.options import JsonOutput
from ttmark.services.cli.terminal import print_table
from ttmark.services.model_folder import BY_NAME, DEMO, resolve_model
from ttmark.services.smollm2 import get_smollm2, is_whole, smollm2_folder
from ttmark.services.startup import StartupError, one_clear_line
from ttmark.services.state_folder import STATE_FOLDER


class ModelProgress:
    """A bar on a terminal, elsewhere a line for each thing that is done."""

    def __init__(self, console: Console, model: str) -> None:
        self._console = console
        self._model = model
        self._doing = ""
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, disable=not console.is_terminal)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, doing: str, share: float | None) -> None:
        """What is being done, and the share of it that is done."""
        if doing != self._doing:
            self._doing = doing
            self._bar.start()
            self._task = self._bar.add_task(f"model {self._model}: {doing}", total=None)
            if self._bar.disable:
                self._console.print(f"model {self._model}: {doing} ...")
        self._bar.update(self._task, completed=share, total=None if share is None else 1.0)


def fetch_named(arguments: Sequence[str]) -> None:
    """SmolLM2, where the arguments of an experiment name it and do not ask for help."""
    named = {*arguments, *map("=".join, pairwise(arguments))}
    if f"--model={SMOLLM2}" in named and "--help" not in named:
        with one_clear_line(), ModelProgress(Console(stderr=True), SMOLLM2) as progress:
            get_smollm2(STATE_FOLDER, progress)


app = typer.Typer(help="Models that `ttmark` knows by name.", no_args_is_help=True)

State = Annotated[
    Path, typer.Option(file_okay=False, envvar="TTMARK_STATE", help="State folder, as of `ttmark up`.")
]


@app.command()
def get(
    model: Annotated[str, typer.Argument(help=f"{SMOLLM2}, or {DEMO}, which ships with the project.")],
    state: State = STATE_FOLDER,
    as_json: JsonOutput = False,
) -> None:
    """Fetch a model and make its folder; one that is there is read through and checked.

    After Ctrl-C the same command goes on where it stopped.
    """
    with one_clear_line():
        if model not in BY_NAME:
            raise StartupError(f"unknown model {model!r}; there are {' and '.join(BY_NAME)}")
        if model == SMOLLM2:
            with ModelProgress(Console(stderr=True), model) as progress:
                try:
                    get_smollm2(state, progress, read_all=True)
                except KeyboardInterrupt as error:
                    raise StartupError("stopped; the same command goes on from here") from error
        folder = resolve_model(model, state)
    tell(_described(model, "ready", folder), str(folder), as_json=as_json)


@app.command("list")
def list_models(state: State = STATE_FOLDER, as_json: JsonOutput = False) -> None:
    """The models that there are, and whether they are on this machine."""
    models = [_describe(name, state) for name in BY_NAME]
    if as_json:
        print_json(models)
        return
    order = ("model", "status", "licence", "folder")
    rows = [{name.upper(): model[name] for name in order} for model in models]
    print_table(rows, empty="no models")


def _describe(name: str, state: Path) -> dict[str, str]:
    """Its status is `ready`, `absent`, or `damaged`: the next `get` or `up` makes it again."""
    if name == DEMO:
        return _described(name, "ready", resolve_model(name))
    folder = smollm2_folder(state)
    status = "ready" if is_whole(folder) else "damaged" if folder.exists() else "absent"
    return _described(name, status, folder)


def _described(model: str, status: str, folder: Path) -> dict[str, str]:
    return {"model": model, "status": status, "folder": str(folder), "licence": "Apache-2.0"}
