"""What the composition roots share: one clear line and exit code 1 when a service cannot start."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

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
