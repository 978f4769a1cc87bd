"""`ttmark keys`: watermark keys and the life cycle of their versions."""

import asyncio
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from ttmark.services.cli.files import bytes_of, new_closed_file, shown
from ttmark.services.cli.key_store import KeyStore, moment, print_json, run, tell
from ttmark.services.cli.options import JsonOutput, KeyId, TokenizerOption
from ttmark.services.cli.terminal import Yes, confirm, print_table
from ttmark.services.startup import warn
from ttmark.shared.events import Event
from ttmark.shared.features import modules_of
from ttmark.shared.keys.backup import Restoration, create_backup, restore_backup, verify_store
from ttmark.shared.keys.key_records import KeyInfo
from ttmark.shared.keys.rotation_by_volume import Rotation, rotate_due, volume_name
from ttmark.shared.languages.words import counted
from ttmark.shared.schemas.foreign_profile import ForeignProfile
from ttmark.shared.schemas.profile import MAX_POOL, Profile, Purpose, profile_fields
from ttmark.shared.tokenization import TextTokenizer, TokenizerMissing
from ttmark.shared.vault.stores.key_store_errors import NoSuchKey, ReplicasBehind

app = typer.Typer(help="Watermark keys and their versions.", no_args_is_help=True)

_POLL_SECONDS = 0.5
_STANDARD_OUTPUT = "-"

Volumes = Mapping[str, int]

PURPOSES = (
    "What the texts are for. `answers`, the default: 4 keys; `edited-text`: one key, which finds "
    "more edited texts and is easier to forge."
)
Version = Annotated[int, typer.Argument(metavar="VERSION", help="Number of the version.")]


def profile_from(tokenizer: Path, parameters: list[str], **fields: Any) -> Profile:
    """The profile of these `profile_fields`, with the fingerprint of the tokenizer in the folder `tokenizer`.

    Raises:
        typer.BadParameter: naming the option that is at fault.
    """
    try:
        fingerprint = TextTokenizer.load(tokenizer).fingerprint
        fields |= {"parameters": dict(map(parameter, parameters)), "tokenizer_fingerprint": fingerprint}
        return Profile.model_validate(profile_fields(**fields))
    except TokenizerMissing as error:
        raise typer.BadParameter(str(error), param_hint="--tokenizer") from error
    except ValidationError as error:
        raise typer.BadParameter(
            "; ".join(detail["msg"].removeprefix("Value error, ") for detail in error.errors())
        ) from error
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--for") from error


def parameter(text: str) -> tuple[str, int | float | bool]:
    """Name and value of an option NAME=VALUE.

    Raises:
        typer.BadParameter: it is not one.
    """
    name, separator, value = text.partition("=")
    if separator and value in ("true", "false"):
        return name, value == "true"
    for number in (int, float):
        try:
            return name, number(value)
        except ValueError:
            continue
    raise typer.BadParameter(f"{text!r} is not NAME=NUMBER or NAME=true|false", param_hint="--param")


@app.command()
def create(
    key_id: KeyId,
    tokenizer: TokenizerOption,
    tenant: Annotated[str, typer.Option(help="Who may generate and detect with the key.")] = "local",
    purpose: Annotated[Purpose | None, typer.Option("--for", help=PURPOSES)] = None,
    scheme: Annotated[str | None, typer.Option(help="Watermark scheme; default: gumbel.")] = None,
    block_size: Annotated[
        int | None, typer.Option(help="Tokens that are watermarked together (r); default: 2.")
    ] = None,
    context_width: Annotated[int | None, typer.Option(help="Preceding tokens that seed a block (H).")] = None,
    param: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Parameter of the scheme; may be repeated.")
    ] = None,
    pool: Annotated[
        int | None,
        typer.Option(
            min=1, max=MAX_POOL, metavar="KEYS", help="Keys of each version; one marks a completion."
        ),
    ] = None,
    payloads: Annotated[
        bool,
        typer.Option(
            "--payloads", help="Requests choose the pool's key, and detection reads its number back."
        ),
    ] = False,
    as_json: JsonOutput = False,
) -> None:
    """Create a key whose first version is in use at once."""
    profile = profile_from(
        tokenizer,
        param or [],
        purpose=purpose,
        scheme=scheme,
        block_size=block_size,
        context_width=context_width,
        pool=pool,
        payloads=payloads,
    )
    made = run(lambda store: store.ring.create(key_id, tenant=tenant, profile=profile), make=True)
    _show_one(made, as_json=as_json)


@app.command("list")
def list_keys(
    tenant: Annotated[str | None, typer.Option(help="Only this tenant's keys.")] = None,
    as_json: JsonOutput = False,
) -> None:
    """List keys and versions; never secrets."""

    async def command(store: KeyStore) -> tuple[list[KeyInfo], Volumes]:
        return await store.ring.list(tenant=tenant), await store.records.counts()

    keys, volumes = run(command)
    _show(keys, volumes, as_json=as_json)


@app.command()
def rotate(
    key_id: KeyId,
    after_tokens: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="TOKENS", help="Rotate by `keys upkeep` after so many marked tokens; 0: never."
        ),
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Add a pending version; promote it once every replica knows it."""

    async def command(store: KeyStore) -> tuple[KeyInfo, Volumes]:
        if after_tokens is None:
            await store.ring.rotate(key_id)
        else:
            await store.ring.rotate_after(key_id, after_tokens or None)
            await rotate_due(store.ring, await store.records.counts(), key_id)
        return await store.ring.info(key_id), await store.records.counts()

    info, volumes = run(command)
    _show_one(info, volumes, as_json=as_json)


@app.command()
def promote(
    key_id: KeyId,
    version: Version,
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait until every replica knows it.")
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Do not mind replicas that do not know it.")] = False,
    as_json: JsonOutput = False,
) -> None:
    """Generate with a pending version from now on; the previous one stays detectable."""

    async def command(store: KeyStore) -> KeyInfo:
        deadline = time.monotonic() + wait
        while True:
            try:
                return await store.ring.promote(key_id, version, force=force)
            except ReplicasBehind:
                if time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(_POLL_SECONDS)

    _show_one(run(command), as_json=as_json)


@app.command()
def retire(key_id: KeyId, version: Version, yes: Yes = False, as_json: JsonOutput = False) -> None:
    """Stop detecting a version that is no longer generated with."""
    _find(key_id, version)
    confirm(f"Texts that version {version} of {key_id} marked will never be found again.", yes=yes)
    _show_one(run(lambda store: store.ring.retire(key_id, version)), as_json=as_json)


@app.command()
def disable(key_id: KeyId, version: Version, yes: Yes = False, as_json: JsonOutput = False) -> None:
    """Take a compromised version out of use at once and for good."""
    _find(key_id, version)
    confirm(
        f"Version {version} of {key_id} will never mark again, and its texts will never be found again.",
        yes=yes,
    )
    _show_one(run(lambda store: store.ring.disable(key_id, version)), as_json=as_json)


@app.command()
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


@app.command()
def rewrap(as_json: JsonOutput = False) -> None:
    """Wrap every record under the current key-encryption key, the first of TTMARK_KEK or its file.

    Put the new key before the old one, restart the services, rewrap, then remove the old key.
    """

    async def command(store: KeyStore) -> tuple[int, int]:
        changed = await store.ring.rewrap(), await store.registry.rewrap()
        for feature in modules_of("events", "ttmark.services.features"):
            await feature.rewrap(store.records, store.kek)
        store.audit(Event("key.rewrap"))
        return changed

    keys, tokens = run(command)
    tell(
        {"keys": keys, "tokens": tokens},
        f"rewrapped {counted(keys, 'key')} and {counted(tokens, 'token')}",
        as_json=as_json,
    )


@app.command()
def backup(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A new file, or - for standard output.")],
    as_json: JsonOutput = False,
) -> None:
    """Write all keys and tokens to an encrypted file, which the key-encryption key alone opens."""

    async def command(store: KeyStore) -> bytes:
        content = await create_backup(store.records, store.kek)
        store.audit(Event("store.backup"))
        return content

    if file == _STANDARD_OUTPUT:
        sys.stdout.buffer.write(run(command))
        return
    with new_closed_file(Path(file)) as handle:
        content = run(command)
        handle.write(content)
    tell({"file": file, "bytes": len(content)}, f"wrote {file}", as_json=as_json)


@app.command()
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
        store.audit(Event("store.restore"))
        return result

    counts = asdict(run(command, make=True))
    tell(counts, ", ".join(f"{count} {what}" for what, count in counts.items()), as_json=as_json)
    if counts["restored"]:
        warn("a backup holds no counts of marked tokens: those that the store lost begin anew, as limits do")


@app.command()
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


def _find(key_id: str, version: int) -> None:
    """Ends the command where there is no such version, before anybody is asked about it."""

    async def command(store: KeyStore) -> None:
        found = await store.ring.info(key_id)
        if version not in {one.version for one in found.versions}:
            raise NoSuchKey(f"key {key_id} has no version {version}")

    run(command)


def _show_one(key: KeyInfo, volumes: Volumes | None = None, *, as_json: bool) -> None:
    if as_json:
        print_json(_document(key, volumes))
    else:
        _show([key], volumes, as_json=False)


def _show(keys: list[KeyInfo], volumes: Volumes | None = None, *, as_json: bool) -> None:
    if as_json:
        print_json([_document(key, volumes) for key in keys])
        return
    rows = [
        {
            "KEY": key.key_id,
            "TENANT": key.tenant,
            "PROFILE": key.profile.profile_id + (" (foreign)" * isinstance(key.profile, ForeignProfile)),
            "VERSION": str(version.version),
            "STATE": version.state.value,
            "MARKED TOKENS": "-"
            if volumes is None
            else str(volumes.get(volume_name(key.key_id, version.version), 0)),
            "LIMIT": str(key.rotate_after_tokens or "-") if version == key.primary else "-",
            "POOL": _pool(key.profile),
            "CREATED (UTC)": moment(version.created_at),
            "CHANGED (UTC)": moment(version.changed_at),
            "EXPORTED (UTC)": moment(version.exported_at),
            "REVEALED (UTC)": moment(version.revealed_at),
        }
        for key in keys
        for version in key.versions
    ]
    print_table(rows, empty="no keys; make one with `ttmark keys create`")


def _pool(profile: Profile | ForeignProfile) -> str:
    if isinstance(profile, ForeignProfile):
        return "-"
    return f"{profile.pool}{' payloads' if profile.payloads else ''}"


def _document(key: KeyInfo, volumes: Volumes | None) -> dict[str, object]:
    document = key.model_dump(mode="json")
    for version in document["versions"]:
        if volumes is not None:
            version["marked_tokens"] = volumes.get(volume_name(key.key_id, version["version"]), 0)
    return {**document, "profile_id": key.profile.profile_id}
