"""Steps on the state folder `.ttmark` below the current one: starts, commands, and what they leave."""

import asyncio
import json
from pathlib import Path
from typing import Any

from ttmark.services.cli.main import app
from ttmark.services.features.audit.chain_check import verify_folder
from ttmark.services.features.audit.segments import segments
from ttmark.services.features.audit.trail import Heads
from ttmark.services.local.provision import TENANT, provision
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.startup import one_clear_line
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.keys.backup import restore_backup, verify_store
from ttmark.shared.keys.keyring import KeyRing

STATE = Path(".ttmark")
AUDIT = Path("audit")
BACKUP = Path("backup")


def start() -> None:
    """What `ttmark up` does before it starts the services."""
    with one_clear_line():
        provision("demo", None, STATE)


def command(*arguments: str) -> None:
    app(list(arguments))


def authenticate(token: str) -> None:
    """Fails unless the token opens something for the local tenant."""

    async def ask() -> None:
        settings = KeyStoreSettings()
        store = settings.open_store()
        registry = TokenRegistry(store, settings.load_kek(), ledger=settings.open_ledger())
        assert (await registry.authenticate(token)).tenant == TENANT
        await store.close()

    asyncio.run(ask())


def show() -> None:
    """What is there, as JSON; fails if something is damaged."""
    print(json.dumps(asyncio.run(_shown(BACKUP.read_bytes() if BACKUP.exists() else None))))


async def _shown(backup: bytes | None) -> dict[str, Any]:
    settings = KeyStoreSettings()
    store, kek, ledger = settings.open_store(), settings.load_kek(), settings.open_ledger()
    verified = await verify_store(store, kek, ledger)
    assert verified.problems == {}, verified.problems
    keys = await KeyRing(store, kek, ledger=ledger).list()
    tokens = await TokenRegistry(store, kek, ledger=ledger).list()
    found = segments(AUDIT)
    heads, unknown = await Heads(store, kek).read_all()
    assert unknown == {}
    trail = verify_folder(found, heads)
    assert trail.problems == [], trail.problems
    if backup is not None:
        assert (await restore_backup(store, kek, backup)).restored == 0
    await store.close()
    events = [
        json.loads(line)["event"] for parts in found.values() for part in parts for line in part.lines()
    ]
    return {
        "keys": {key.key_id: [version.state for version in key.versions] for key in keys},
        "tokens": sorted([token.label, token.revoked_at is not None] for token in tokens),
        "wrapped": sorted(verified.keks.values()),
        "backup": backup is not None,
        "audit": sorted(event["action"] for event in events if event["action"] != "audit.start"),
    }
