"""`ttmark keys describe|export|reveal`: what of a key leaves the store, as files."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC
from pathlib import Path
from typing import Annotated

import orjson
import typer

from ttmark.services.cli.audit_store import trail_segments, verified
from ttmark.services.cli.files import new_closed_file
from ttmark.services.cli.key_store import KeyStore, run
from ttmark.services.startup import StartupError
from ttmark.shared.audit.chain_check import Problem
from ttmark.shared.audit.export import verify_export
from ttmark.shared.audit.record import read_record
from ttmark.shared.keys.key_files import RevealedKey, export_file
from ttmark.shared.keys.portable_mark import MarkSecret, PortableMark

_DESCRIBED_WARNING = (
    "{file} holds the key of {key_id}: who reads it can forge the mark. Hand it over encrypted; delete it "
    "when it is no longer needed."
)


def describe(
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="Key id.")],
    version: Annotated[int | None, typer.Option(help="Default: the one that marks, else the newest.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Name of a model with the tokenizer, for readers.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A new file; default: standard output.")] = None,
    secret_out: Annotated[
        Path | None, typer.Option(help="Of another system's key: a new file with the key.")
    ] = None,
    i_understand: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="With --secret-out the key id once more: its reader can forge."),
    ] = None,
) -> None:
    """Describe a mark in a file that other implementations read (docs/portable-marks.md); never its key.

    With --secret-out the key leaves the store, which needs an audit trail (TTMARK_AUDIT_FOLDER) and is on
    record.
    """
    if secret_out is not None and i_understand != key_id:
        raise typer.BadParameter(f"name the key, {key_id}, to confirm", param_hint="--i-understand")

    async def command(store: KeyStore) -> tuple[PortableMark, MarkSecret | None]:
        mark = await store.ring.describe_mark(key_id, version)
        if secret_out is None:
            return mark, None
        if not store.audited:
            raise StartupError("a key that leaves has to be on record: set TTMARK_AUDIT_FOLDER")
        return mark, await store.ring.export_foreign(key_id)

    with ExitStack() as files:
        mark_file = None if out is None else files.enter_context(new_closed_file(out))
        secret_file = None if secret_out is None else files.enter_context(new_closed_file(secret_out))
        mark, secret = run(command)
        content = mark.model_copy(update={"model": model}).written()
        if mark_file is None:
            typer.echo(content, nl=False)
        else:
            mark_file.write(content)
        if secret_file is not None and secret is not None:
            secret_file.write(secret.written())
    if secret_out is not None:
        typer.echo(_DESCRIBED_WARNING.format(file=secret_out, key_id=key_id), err=True)


STANDARD_OUTPUT = "-"
_EXPORT_WARNING = (
    "{what} holds PRF keys of {key_id}: who reads them can forge its mark and remove it. "
    "Delete it when it is no longer needed; if it leaks, rotate the key and disable its exported versions."
)


def export(
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="Key id.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="A new file, or - for standard output.")],
    i_understand: Annotated[
        str, typer.Option(metavar="KEY", help="The key id once more: who reads the file can forge the mark.")
    ],
    to_terminal: Annotated[
        bool, typer.Option("--to-terminal", help="Write to standard output even if it is a terminal.")
    ] = False,
) -> None:
    """Write the profile and the PRF keys of a key, for a detector of somebody else's.

    Needs the right to change keys and an audit trail (TTMARK_AUDIT_FOLDER); the versions' record says that
    they left.
    """
    if i_understand != key_id:
        raise typer.BadParameter(f"name the key, {key_id}, to confirm", param_hint="--i-understand")
    if file == STANDARD_OUTPUT:
        if is_terminal() and not to_terminal:
            raise typer.BadParameter("standard output is a terminal; give a file, or --to-terminal")
        typer.echo(_exported(key_id), nl=False)
    else:
        with new_closed_file(Path(file)) as handle:
            handle.write(_exported(key_id))
    what = "the output" if file == STANDARD_OUTPUT else file
    typer.echo(_EXPORT_WARNING.format(what=what, key_id=key_id), err=True)


def is_terminal() -> bool:
    """Whether somebody may be looking at standard output."""
    return sys.stdout.isatty()


def _exported(key_id: str) -> bytes:
    async def command(store: KeyStore) -> bytes:
        if not store.audited:
            raise StartupError("an export has to be on record: set TTMARK_AUDIT_FOLDER")
        return export_file(*await store.ring.export(key_id))

    return run(command)


_PUBLISHING = ("key.create", "key.import", "key.rotate")
_REVEAL_WARNING = (
    "{file} holds the PRF keys of version {version} of {key_id}. From now on whoever has it can write texts "
    "that carry its mark: the mark of a text that is not documented from before proves nothing."
)


def reveal(
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="Key id.")],
    version: Annotated[int, typer.Option(min=1, help="Number of the version.")],
    out: Annotated[Path, typer.Option(help="A new file.")],
    i_understand: Annotated[
        str, typer.Option(metavar="KEY", help="The key id once more: who reads the file can forge the mark.")
    ],
    trail: Annotated[
        Path | None,
        typer.Option(help="An export of the audit trail with the version's making, if that was pruned."),
    ] = None,
) -> None:
    """Make a retired or disabled version public, so that anybody can check verdicts about its texts.

    Refused while a service may still use the version. Needs an audit trail (TTMARK_AUDIT_FOLDER), which has
    a record of the revelation from then on.
    """
    if i_understand != key_id:
        raise typer.BadParameter(f"name the key, {key_id}, to confirm", param_hint="--i-understand")
    with new_closed_file(out) as handle:
        handle.write(_revealed(key_id, version, trail))
    typer.echo(_REVEAL_WARNING.format(file=out, version=version, key_id=key_id), err=True)


def _revealed(key_id: str, version: int, trail: Path | None) -> bytes:
    async def command(store: KeyStore) -> bytes:
        if not store.audited:
            raise StartupError("a revelation has to be on record: set TTMARK_AUDIT_FOLDER")
        commitment = (await store.ring.describe_mark(key_id, version)).commitment
        if trail is not None:
            lines: Iterable[bytes] = _trail_lines(trail)
        else:
            result, _ = await verified(store)
            if result.problems:
                raise StartupError(
                    f"the audit trail is not in order: {result.problems[0]} (`ttmark audit verify store`)"
                )
            lines = _kept()
        record = _published(lines, commitment)
        if record is None:
            raise StartupError(
                f"no record of the audit trail published a commitment to version {version} of {key_id}: it "
                "was made without a trail or by an earlier release, or the record was pruned (--trail EXPORT)"
            )
        mark, secret, revealed_at = await store.ring.reveal(key_id, version)
        return RevealedKey(
            key_id=key_id,
            version=version,
            mark=mark,
            secret=secret,
            record=record,
            revealed_at=revealed_at.astimezone(UTC).isoformat(),
        ).written()

    return run(command)


def _kept() -> Iterator[bytes]:
    for parts in trail_segments().values():
        for part in parts:
            yield from part.lines()


def _trail_lines(path: Path) -> list[bytes]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise StartupError(f"cannot read {path}: {error.strerror}") from error
    found = verify_export(lines, None)
    if isinstance(found, Problem):
        raise StartupError(f"{path} is no export of an audit trail as it was written: {found}")
    return lines


def _published(lines: Iterable[bytes], commitment: str) -> str | None:
    """The record of the version's making."""
    for line in lines:
        if commitment.encode() in line and orjson.loads(line).get("event", {}).get("action") in _PUBLISHING:
            read_record(line)
            return line.decode()
    return None
