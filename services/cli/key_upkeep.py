"""`ttmark keys rewrap|backup|restore|verify`: care of the store as a whole."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import orjson
import typer

from services.cli.key_store import JsonOutput, key_store, run
from shared.keys import (
    AuditEvent,
    Restoration,
    Verification,
    create_backup,
    restore_backup,
    verify_store,
)

BackupFile = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")]


def rewrap(as_json: JsonOutput = False) -> None:
    """Wrap every record under the current key-encryption key, the first of TTMARK_KEK or its file.

    Put the new key before the old one, restart the services, rewrap, then remove the old key.
    """

    async def command() -> tuple[int, int]:
        async with key_store() as keys:
            changed = await keys.ring.rewrap(), await keys.registry.rewrap()
            keys.audit(AuditEvent("key.rewrap"))
            return changed

    keys, tokens = run(command())
    _tell({"keys": keys, "tokens": tokens}, f"rewrapped {keys} keys and {tokens} tokens", as_json=as_json)


def backup(file: BackupFile, as_json: JsonOutput = False) -> None:
    """Write all keys and tokens to an encrypted file, which the key-encryption key alone opens."""

    async def command() -> bytes:
        async with key_store() as keys:
            content = await create_backup(keys.store, keys.kek)
            keys.audit(AuditEvent("store.backup"))
            return content

    content = run(command())
    try:
        with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
    except OSError as error:
        raise typer.BadParameter(f"cannot write {file}: {error.strerror}") from error
    _tell({"file": str(file), "bytes": len(content)}, f"wrote {file}", as_json=as_json)


def restore(file: BackupFile, as_json: JsonOutput = False) -> None:
    """Bring back keys and tokens that the store lost; what it has is never overwritten."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"cannot read {file}: {error.strerror}") from error

    async def command() -> Restoration:
        async with key_store() as keys:
            result = await restore_backup(keys.store, keys.kek, content)
            keys.audit(AuditEvent("store.restore"))
            return result

    result = run(command())
    counts = {"restored": result.restored, "unchanged": result.unchanged, "newer": result.newer}
    _tell(counts, ", ".join(f"{count} {what}" for what, count in counts.items()), as_json=as_json)


def verify(as_json: JsonOutput = False) -> None:
    """Open every secret and check every record; exit code 1 when something is wrong."""

    async def command() -> Verification:
        async with key_store() as keys:
            return await verify_store(keys.store, keys.kek, keys.ledger)

    result = run(command())
    document = {
        "keys": result.keys,
        "versions": result.versions,
        "tokens": result.tokens,
        "keks": result.keks,
        "problems": result.problems,
    }
    text = f"{result.keys} keys with {result.versions} versions and {result.tokens} tokens open"
    _tell(document, text, as_json=as_json)
    if result.problems:
        for name, problem in result.problems.items():
            typer.echo(f"ttmark: {name}: {problem}", err=True)
        raise typer.Exit(1)


def _tell(document: Mapping[str, object], text: str, *, as_json: bool) -> None:
    typer.echo(orjson.dumps(document).decode() if as_json else text)
