"""What the commands on keys and tokens share: opening the store, one-line errors, tables."""

import asyncio
import getpass
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import orjson
import typer
from rich.console import Console
from rich.table import Table

from services.runtime import StartupError, one_clear_line
from services.settings_keys import KeyStoreSettings
from shared.keys import (
    AuditEvent,
    AuditSink,
    InvalidName,
    KeyEncryptionKey,
    KeyRing,
    KeyStoreError,
    Ledger,
    RecordStore,
    TokenRegistry,
)

T = TypeVar("T")

JsonOutput = Annotated[bool, typer.Option("--json", help="Write JSON for programs to read.")]


@dataclass(frozen=True)
class KeyStore:
    """The configured store with what works on it."""

    store: RecordStore
    kek: KeyEncryptionKey
    ledger: Ledger
    audit: AuditSink

    @property
    def ring(self) -> KeyRing:
        """The keys."""
        return KeyRing(self.store, self.kek, ledger=self.ledger, audit=self.audit)

    @property
    def registry(self) -> TokenRegistry:
        """The access tokens."""
        return TokenRegistry(self.store, self.kek, ledger=self.ledger, audit=self.audit)


@asynccontextmanager
async def key_store() -> AsyncIterator[KeyStore]:
    """The key store that the environment names, closed at the end of the block.

    Raises:
        StartupError: the settings are not usable.
    """
    settings = KeyStoreSettings()
    store = settings.open_store()
    try:
        yield KeyStore(store, settings.load_kek(), settings.open_ledger(), _audit_sink(settings.audit_file))
    finally:
        await store.close()


def _audit_sink(path: Path | None) -> AuditSink:
    def append(event: AuditEvent) -> None:
        if path is None:
            return
        line = {"timestamp": datetime.now(UTC), **asdict(replace(event, actor=getpass.getuser()))}
        try:
            with os.fdopen(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "ab") as file:
                file.write(orjson.dumps(line) + b"\n")
        except OSError as error:
            raise StartupError(f"cannot write the audit trail to {path} ({error.strerror})") from error

    return append


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
