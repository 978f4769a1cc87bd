"""`ttmark keys upkeep|rewrap|backup|restore|verify`: care of the store as a whole."""

import asyncio
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ttmark.services.cli.files import bytes_of, new_closed_file, shown
from ttmark.services.cli.key_store import KeyStore, print_json, run, tell
from ttmark.services.cli.options import JsonOutput
from ttmark.services.startup import warn
from ttmark.shared.audit.trail import Heads
from ttmark.shared.keys.backup import Restoration, create_backup, restore_backup, verify_store
from ttmark.shared.keys.volume import Rotation, rotate_due
from ttmark.shared.languages.words import counted
from ttmark.shared.vault.audit_events import AuditEvent

_POLL_SECONDS = 0.5
_STANDARD_OUTPUT = "-"


def upkeep(
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait until every replica follows.")
    ] = 0,
    as_json: JsonOutput = False,
) -> None:
    """Rotate the keys that have marked as many tokens as `rotate --after-tokens` allows.

    Run it every few minutes. A version that a replica does not know yet is promoted by the next run.
    """

    async def command(store: KeyStore) -> dict[tuple[str, int], Rotation]:
        deadline = time.monotonic() + wait
        done: dict[tuple[str, int], Rotation] = {}
        while True:
            due = await rotate_due(store.ring, await store.records.counts())
            done |= {(rotation.key_id, rotation.version): rotation for rotation in due}
            if not any(rotation.waits_for for rotation in due) or time.monotonic() >= deadline:
                return done
            await asyncio.sleep(_POLL_SECONDS)

    rotations = run(command).values()
    if as_json:
        print_json(list(rotations))
        return
    for rotation in rotations:
        done = f"version {rotation.version} of {rotation.key_id} is in use from now on"
        typer.echo(f"{rotation.waits_for or done} (marked tokens before it: {rotation.marked_tokens})")
    if not rotations:
        typer.echo("no key has reached its limit")


def rewrap(as_json: JsonOutput = False) -> None:
    """Wrap every record under the current key-encryption key, the first of TTMARK_KEK or its file.

    Put the new key before the old one, restart the services, rewrap, then remove the old key.
    """

    async def command(store: KeyStore) -> tuple[int, int]:
        changed = await store.ring.rewrap(), await store.registry.rewrap()
        await Heads(store.records, store.kek).rewrap()
        store.audit(AuditEvent("key.rewrap"))
        return changed

    keys, tokens = run(command)
    tell(
        {"keys": keys, "tokens": tokens},
        f"rewrapped {counted(keys, 'key')} and {counted(tokens, 'token')}",
        as_json=as_json,
    )


def backup(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A new file, or - for standard output.")],
    as_json: JsonOutput = False,
) -> None:
    """Write all keys and tokens to an encrypted file, which the key-encryption key alone opens."""

    async def command(store: KeyStore) -> bytes:
        content = await create_backup(store.records, store.kek)
        store.audit(AuditEvent("store.backup"))
        return content

    if file == _STANDARD_OUTPUT:
        sys.stdout.buffer.write(run(command))
        return
    with new_closed_file(Path(file)) as handle:
        content = run(command)
        handle.write(content)
    tell({"file": file, "bytes": len(content)}, f"wrote {file}", as_json=as_json)


def restore(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The backup; - for input.")],
    as_json: JsonOutput = False,
) -> None:
    """Bring back keys and tokens that the store lost; what it has is never overwritten."""
    try:
        content = bytes_of(file)
    except OSError as error:
        raise typer.BadParameter(f"cannot read {shown(file)}: {error.strerror}") from error

    async def command(store: KeyStore) -> Restoration:
        result = await restore_backup(store.records, store.kek, content)
        store.audit(AuditEvent("store.restore"))
        return result

    counts = asdict(run(command, make=True))
    tell(counts, ", ".join(f"{count} {what}" for what, count in counts.items()), as_json=as_json)
    if counts["restored"]:
        warn("a backup holds no counts of marked tokens: those that the store lost begin anew, as limits do")


def verify(as_json: JsonOutput = False) -> None:
    """Open every secret and check every record; exit code 1 when something is wrong."""
    result = run(lambda store: verify_store(store.records, store.kek, store.ledger))
    keys, versions = counted(result.keys, "key"), counted(result.versions, "version")
    text = f"{keys} with {versions} and {counted(result.tokens, 'token')} open"
    tell(asdict(result), text, as_json=as_json)
    if result.problems:
        for name, problem in result.problems.items():
            typer.echo(f"ttmark: {name}: {problem}", err=True)
        raise typer.Exit(1)
