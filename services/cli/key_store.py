"""What the commands on keys and tokens share: opening the store, one-line errors, tables."""

import asyncio
import getpass
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Self, TypeVar

import orjson
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.startup import StartupError, no_start_after, one_clear_line, warn
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.audit.trail import AuditTrail
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.vault.audit_events import AuditEvent, AuditSink
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.key_store_errors import InvalidName, KeyStoreError
from ttmark.shared.vault.ledger import Ledger
from ttmark.shared.vault.store import RecordStore

T = TypeVar("T")
Command = Callable[["KeyStore"], Coroutine[Any, Any, T]]


@dataclass(frozen=True)
class KeyStore:
    """The configured store with what works on it.

    Attributes:
        audited: whether the audit trail is kept.
    """

    records: RecordStore
    kek: KeyEncryptionKey
    ledger: Ledger
    audit: AuditSink
    audited: bool = False

    @property
    def ring(self) -> KeyRing:
        return KeyRing(self.records, self.kek, ledger=self.ledger, audit=self.audit)

    @property
    def registry(self) -> TokenRegistry:
        return TokenRegistry(self.records, self.kek, ledger=self.ledger, audit=self.audit)


def run(command: Command[T], *, make: bool = False) -> T:
    """Runs a command on the key store that the environment names.

    A bad name is bad usage, trouble with the settings or the store one line and exit code 1.

    Args:
        make: the default state folder where it is missing.
    """
    with one_clear_line(), no_start_after(KeyStoreError):
        try:
            return asyncio.run(_with_key_store(command, make=make))
        except InvalidName as error:
            raise typer.BadParameter(str(error)) from error


async def _with_key_store(command: Command[T], *, make: bool) -> T:
    settings = KeyStoreSettings()
    kek, store = settings.load_kek(), settings.open_store(make=make)
    try:
        async with _Trail(settings, store, kek) as trail:
            return await command(
                KeyStore(store, kek, settings.open_ledger(make=make), trail.hear, trail.kept)
            )
    finally:
        await store.close()


class _Trail:
    """The audit trail of a command, which is opened for its first event."""

    def __init__(self, settings: KeyStoreSettings, store: RecordStore, kek: KeyEncryptionKey) -> None:
        self._user = getpass.getuser()
        self._open = partial(settings.open_trail, f"commands-{self._user}@{socket.gethostname()}", store, kek)
        self._trail: AuditTrail | None = None
        self._folder = settings.audit_folder
        self.kept = self._folder is not None

    def hear(self, event: AuditEvent) -> None:
        if not self.kept:
            return
        self._trail = self._trail or self._open()
        try:
            if self._trail is not None:
                self._trail.write(replace(event, actor=self._user))
        except OSError as error:
            raise StartupError(f"cannot write the audit trail in {self._folder}: {error.strerror}") from error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """The store learns the head of what was written."""
        if self._trail is None:
            return
        try:
            await self._trail.anchor()
        except (KeyStoreError, OSError) as error:
            warn(f"the audit trail is written, but the store lacks its head: {error}")
        self._trail.close()


def print_json(document: object) -> None:
    typer.echo(orjson.dumps(document).decode())


def tell(document: object, text: str, *, as_json: bool) -> None:
    """The document as JSON, or what it says to people."""
    if as_json:
        print_json(document)
    else:
        typer.echo(text)


def print_table(rows: list[dict[str, str]], *, empty: str) -> None:
    """Rows by column on standard output, or the line `empty` where there is nothing to show."""
    if not rows:
        typer.echo(empty)
        return
    table = Table(*rows[0], box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*map(Text, row.values()))  # brackets in a label are no markup
    # As wide as it needs to be: a terminal may wrap lines, a cell that is cut short helps nobody.
    width = Console(width=10_000).measure(table).maximum
    console = Console(soft_wrap=True, width=max(width, Console().width))
    console.print(table, overflow="ignore", no_wrap=True, crop=False)


def moment(value: datetime | None) -> str:
    """A time in UTC to the minute, or a dash."""
    return f"{value:%Y-%m-%d %H:%M}" if value else "-"
