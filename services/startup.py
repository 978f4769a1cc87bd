"""What the composition roots share: one clear line and exit code 1 when a service cannot start."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib.util import find_spec
from typing import ParamSpec, TypeVar

import typer


class StartupError(Exception):
    """The service cannot start; the message is one line that says what to do."""


@contextmanager
def one_clear_line() -> Iterator[None]:
    """Turns a StartupError into one line on standard error and exit code 1."""
    try:
        yield
    except StartupError as error:
        typer.echo(f"ttmark: {in_one_line(str(error))}", err=True)
        raise typer.Exit(1) from error


def warn(text: str) -> None:
    """One line on standard error, about what stops nothing."""
    typer.echo(f"ttmark: {in_one_line(text)}", err=True)


def in_one_line(text: str) -> str:
    """The text with what would break the line, or the terminal, as escapes."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


@contextmanager
def no_start_after(*errors: type[Exception]) -> Iterator[None]:
    """Turns errors of these kinds, whose messages are one clear line already, into a StartupError."""
    try:
        yield
    except errors as error:
        raise StartupError(str(error)) from error


def listen(host: str, port: int, names: str) -> socket.socket:
    """A listening TCP socket.

    Args:
        names: what names the address and the port, for the message.

    Raises:
        StartupError: the port is taken or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise StartupError(
            f"cannot listen on {host}:{port} ({error.strerror}): stop what uses it, or choose another "
            f"with {names}"
        ) from error
    return listener


P = ParamSpec("P")
R = TypeVar("R")

# The extras of pyproject.toml, each with the modules of its own libraries and the extras that it contains.
MODULES = {
    "gen": (
        "filelock",
        "gguf",
        "huggingface_hub",
        "jinja2",
        "llguidance",
        "psutil",
        "safetensors",
        "torch",
        "transformers",
    ),
    "detect": ("charset_normalizer", "confusable_homoglyphs", "lxml", "pdfminer", "pypdfium2", "regex"),
    "bulk": ("pyarrow",),
    "ray": ("ray",),
    "vllm": ("yaml",),
    "provenance": ("c2pa",),
    "eval": ("scipy",),
}
CONTAINS = {
    "gen": (),
    "detect": (),
    "bulk": ("detect",),
    "ray": ("bulk",),
    "vllm": ("gen",),
    "provenance": (),
    "eval": ("gen", "detect"),
}


def require(*extras: str) -> None:
    """Does nothing where every library of these extras is installed.

    Raises:
        StartupError: one is missing; the message names it and the command that installs it.
    """
    missing = {extra: modules[0] for extra in extras if (modules := _missing(extra))}
    if missing:
        wanted = ",".join(missing)
        raise StartupError(
            f"{', '.join(missing.values())} not installed: pip install 'ttmark[{wanted}]', "
            f"in a checkout .venv/bin/pip install -e '.[{wanted}]'"
        )


def needs(*extras: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A command that ends with one line and exit code 1 where one of these extras is missing."""

    def decorate(command: Callable[P, R]) -> Callable[P, R]:
        @wraps(command)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            with one_clear_line():
                require(*extras)
            return command(*args, **options)

        return checked

    return decorate


def _missing(extra: str) -> list[str]:
    contained = [module for other in CONTAINS[extra] for module in _missing(other)]
    return [*contained, *(module for module in MODULES[extra] if find_spec(module) is None)]
