"""`ttmark up`: both services with embedded defaults, a demonstration, then stay up until Ctrl-C."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from services.cli.demonstration import demonstrate
from services.local.processes import LocalServices
from services.local.provision import provision
from services.runtime import one_clear_line


def up(
    model: Annotated[
        str, typer.Option(help="`demo`, a hub id, or a folder with a causal language model.")
    ] = "demo",
    store_url: Annotated[
        str | None,
        typer.Option(help="Key store, redis://... or sqlite:///...; default: a file in the state folder."),
    ] = None,
    gen_port: Annotated[int, typer.Option(help="Port of the generation service.")] = 8000,
    detect_port: Annotated[int, typer.Option(help="Port of the detection service.")] = 8001,
    state: Annotated[Path, typer.Option(help="Folder for keys, tokens and logs.")] = Path(".ttmark"),
    exit_after_demo: Annotated[bool, typer.Option("--exit", help="Stop after the demonstration.")] = False,
) -> None:
    """Start both services, show a watermark go round, stay up until Ctrl-C."""
    console = Console()
    with one_clear_line():
        console.print(f"[bold]ttmark[/] model [cyan]{model}[/], state in [cyan]{state}[/]")
        setup = provision(model, store_url, state)
        with stop_on_signals(), LocalServices(setup, gen_port, detect_port) as services:
            with console.status("starting both services ..."):
                services.wait_until_ready()
            demonstrate(services, console)
            if not exit_after_demo:
                console.print("Press Ctrl-C to stop.")
                services.wait()
    console.print("stopped")


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does, and both leave the block quietly."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, previous)
