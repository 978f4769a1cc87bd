"""Hears of the events of services and of commands, for the audit trail."""

import getpass
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from ttmark.services.features.audit.settings import AuditSettings
from ttmark.services.features.audit.trail import KIND, AuditTrail, watch_trail
from ttmark.services.startup import StartupError, warn
from ttmark.shared.events import Event, EventSink
from ttmark.shared.vault.kek import KeyWrapper
from ttmark.shared.vault.stores.key_store_errors import KeyStoreError
from ttmark.shared.vault.stores.store import RecordStore
from ttmark.shared.vault.vault import Vault


def check() -> None:
    """Reads the settings, so that a start fails before it loads anything."""
    AuditSettings()


def in_service(
    writer: str, store: RecordStore, kek: KeyWrapper, registry: CollectorRegistry
) -> AuditTrail | None:
    """The trail that a service continues; None where there is to be none."""
    trail = AuditSettings().open_trail(writer, store, kek)
    watch_trail(trail, registry)
    return trail


@asynccontextmanager
async def in_command(store: RecordStore, kek: KeyWrapper) -> AsyncIterator[EventSink | None]:
    """The trail of a command, which is opened for its first event; then the store learns its head."""
    settings, user = AuditSettings(), getpass.getuser()
    trail: AuditTrail | None = None

    def hear(event: Event) -> None:
        nonlocal trail
        trail = trail or settings.open_trail(f"commands-{user}@{socket.gethostname()}", store, kek)
        if trail is None:
            return
        try:
            trail.write(Event(event.action, **event.said, actor=user))
        except OSError as error:
            raise StartupError(
                f"cannot write the audit trail in {settings.audit_folder}: {error.strerror}"
            ) from error

    try:
        yield hear if settings.audit_folder else None
    finally:
        if trail is not None:
            try:
                await trail.anchor()
            except (KeyStoreError, OSError) as error:
                warn(f"the audit trail is written, but the store lacks its head: {error}")
            trail.close()


async def rewrap(store: RecordStore, kek: KeyWrapper) -> None:
    """Wraps the data keys of the trail's heads under the current key-encryption key."""
    await Vault(store, kek).rewrap(KIND)
