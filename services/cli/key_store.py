"""What the commands on keys and tokens share: opening the store, one-line errors, tables."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from services.runtime import StartupError, one_clear_line
from services.settings_keys import KeyStoreSettings
from shared.keys import InvalidName, KeyRing, KeyStoreError, TokenRegistry

T = TypeVar("T")

JsonOutput = Annotated[bool, typer.Option("--json", help="Write JSON for programs to read.")]


@asynccontextmanager
async def key_ring() -> AsyncIterator[KeyRing]:
    """The keys of the configured store."""
    settings = KeyStoreSettings()
    kek = settings.load_kek()
    store = settings.open_store()
    try:
        yield KeyRing(store, kek)
    finally:
        await store.close()


@asynccontextmanager
async def token_registry() -> AsyncIterator[TokenRegistry]:
    """The access tokens of the configured store."""
    settings = KeyStoreSettings()
    kek = settings.load_kek()
    store = settings.open_store()
    try:
        yield TokenRegistry(store, kek)
    finally:
        await store.close()


def run(command: Coroutine[Any, Any, T]) -> T:
    """Runs the command; a bad name is bad usage, trouble with the store one line and exit code 1."""
    with one_clear_line():
        try:
            return asyncio.run(command)
        except InvalidName as error:
            raise typer.BadParameter(str(error)) from error
        except KeyStoreError as error:
            raise StartupError(str(error)) from error


def print_table(columns: list[str], rows: list[list[str]], *, empty: str) -> None:
    """A table on standard output, or the line `empty` where there is nothing to show."""
    if not rows:
        typer.echo(empty)
        return
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*row)
    console = Console(soft_wrap=True)
    console.print(table, overflow="ignore", no_wrap=True, crop=False)


def moment(value: datetime | None) -> str:
    """A time in UTC to the minute, or a dash."""
    return f"{value:%Y-%m-%d %H:%M}" if value else "-"
