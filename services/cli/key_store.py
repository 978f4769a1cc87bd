"""What the commands on keys and tokens share: opening the store, one-line errors, tables."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import orjson
import typer

from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.startup import no_start_after, one_clear_line
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.events import EventSink, to_all
from ttmark.shared.features import modules_of
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.ledger import Ledger
from ttmark.shared.vault.stores.key_store_errors import InvalidName, KeyStoreError
from ttmark.shared.vault.stores.store import RecordStore

T = TypeVar("T")
Command = Callable[["KeyStore"], Coroutine[Any, Any, T]]


@dataclass(frozen=True)
class KeyStore:
    """The configured store with what works on it.

    Attributes:
        audit: tells what `in_command` opens, in the module `events` of each feature that has one.
    """

    records: RecordStore
    kek: KeyEncryptionKey
    ledger: Ledger
    audit: EventSink
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
        async with AsyncExitStack() as stack:
            opened = [
                await stack.enter_async_context(feature.in_command(store, kek))
                for feature in modules_of("events", "ttmark.services.features")
            ]
            sinks = [sink for sink in opened if sink is not None]
            ledger = settings.open_ledger(make=make)
            return await command(KeyStore(store, kek, ledger, to_all(*sinks), audited=bool(sinks)))
    finally:
        await store.close()


def print_json(document: object) -> None:
    typer.echo(orjson.dumps(document).decode())


def tell(document: object, text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        typer.echo(text)


def moment(value: datetime | None) -> str:
    return f"{value:%Y-%m-%d %H:%M}" if value else "-"
