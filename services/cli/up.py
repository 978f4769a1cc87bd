"""`ttmark up`: both services with embedded defaults, a demonstration, then stay up until Ctrl-C."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ttmark.gen_service.smollm2 import SMOLLM2
from ttmark.services.cli.demonstration import demonstrate
from ttmark.services.cli.models import ModelProgress
from ttmark.services.cli.options import store_url as checked_url
from ttmark.services.local.processes import GIVEN, LocalServices, check_ports
from ttmark.services.local.provision import provision
from ttmark.services.model_folder import DEMO
from ttmark.services.settings.unknown_variables import FEATURES, check_settings
from ttmark.services.smollm2 import ModelUnavailable, get_smollm2
from ttmark.services.state_folder import STATE_FOLDER, check_state_folder
from ttmark.shared.observability.memory import release_free_memory

_PORTS = "--gen-port and --detect-port"


def up(
    model: Annotated[
        str | None, typer.Option(help="`smollm2`, `demo`, a hub id or a folder; default: smollm2, else demo.")
    ] = None,
    store_url: Annotated[
        str | None,
        typer.Option(
            callback=checked_url,
            help="Key store, redis://... or sqlite:///...; default: a file in the state folder.",
        ),
    ] = None,
    gen_port: Annotated[int, typer.Option(min=1, max=65_535, help="Port of the generation service.")] = 8000,
    detect_port: Annotated[
        int, typer.Option(min=1, max=65_535, help="Port of the detection service.")
    ] = 8001,
    state: Annotated[
        Path, typer.Option(file_okay=False, help="Folder for keys, tokens, models and logs.")
    ] = STATE_FOLDER,
    exit_after_demo: Annotated[bool, typer.Option("--exit", help="Stop after the demonstration.")] = False,
) -> None:
    """Start both services, show a watermark go round, stay up until Ctrl-C."""
    console = Console()
    check_settings(*FEATURES, given=GIVEN)
    if gen_port == detect_port:
        raise typer.BadParameter(
            f"both are {gen_port}: each service needs a port of its own", param_hint=_PORTS
        )
    check_state_folder(state)
    check_ports({"gen": gen_port, "detect": detect_port})
    with stop_on_signals():
        model = have_model(model, state, console)
        console.print(f"[bold]ttmark[/] model [cyan]{model}[/], state in [cyan]{state}[/]")
        setup = provision(model, store_url, state)
        with LocalServices(setup, gen_port, detect_port) as services:
            if not console.is_terminal:  # nobody would see the status
                console.print(f"starting both services; their logs are in {state} ...", soft_wrap=True)
            with console.status("starting both services ..."):
                services.wait_until_ready()
            demonstrate(services, console)
            if not exit_after_demo:
                console.print("Press Ctrl-C to stop.")
                release_free_memory()
                services.wait()
    console.print("stopped")


def have_model(model: str | None, state: Path, console: Console) -> str:
    """The model to serve, on this machine if it is smollm2; where that cannot be had and was not asked for,
    the one that ships with the project.

    Raises:
        StartupError: smollm2 was asked for and cannot be had.
    """
    if model not in (None, SMOLLM2):
        return model
    try:
        with ModelProgress(console, SMOLLM2) as progress:
            get_smollm2(state, progress)
    except ModelUnavailable as error:
        if model is not None:
            raise
        console.print(f"{error}; the small demo model is served instead", markup=False, soft_wrap=True)
        return DEMO
    return SMOLLM2


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP do what Ctrl-C does, and all leave the block quietly.

    Under `nohup`, which has SIGHUP ignored, it stays so.
    """
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in previous.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
