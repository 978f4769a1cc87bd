"""What the commands on keys and tokens share: opening the store, one-line errors, tables."""

import asyncio
import getpass
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

import orjson
import typer

from ttmark.services.features.audit.trail import AuditTrail
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.startup import StartupError, no_start_after, one_clear_line, warn
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.events import AuditEvent, AuditSink
from ttmark.shared.keys.keyring import KeyRing
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
        async with _trail(settings, store, kek) as audit:
            ledger, audited = settings.open_ledger(make=make), settings.audit_folder is not None
            return await command(KeyStore(store, kek, ledger, audit, audited))
    finally:
        await store.close()


@asynccontextmanager
async def _trail(
    settings: KeyStoreSettings, store: RecordStore, kek: KeyEncryptionKey
) -> AsyncIterator[AuditSink]:
    """The audit trail of a command, which is opened for its first event; then the store learns its head."""
    user = getpass.getuser()
    trail: AuditTrail | None = None

    def hear(event: AuditEvent) -> None:
        nonlocal trail
        trail = trail or settings.open_trail(f"commands-{user}@{socket.gethostname()}", store, kek)
        if trail is None:
            return
        try:
            trail.write(replace(event, actor=user))
        except OSError as error:
            raise StartupError(
                f"cannot write the audit trail in {settings.audit_folder}: {error.strerror}"
            ) from error

    try:
        yield hear
    finally:
        if trail is not None:
            try:
                await trail.anchor()
            except (KeyStoreError, OSError) as error:
                warn(f"the audit trail is written, but the store lacks its head: {error}")
            trail.close()


def print_json(document: object) -> None:
    typer.echo(orjson.dumps(document).decode())


def tell(document: object, text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        typer.echo(text)


def moment(value: datetime | None) -> str:
    return f"{value:%Y-%m-%d %H:%M}" if value else "-"
