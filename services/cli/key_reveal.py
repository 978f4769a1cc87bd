"""`ttmark keys reveal`: makes a version public that is over, so that anybody can check old verdicts."""

from collections.abc import Iterable, Iterator
from datetime import UTC
from pathlib import Path
from typing import Annotated

import orjson
import typer

from ttmark.services.cli.audit_store import trail_segments, verified
from ttmark.services.cli.closed_file import new_closed_file
from ttmark.services.cli.key_store import KeyStore, run
from ttmark.services.runtime import StartupError
from ttmark.shared.audit.export import verify_export
from ttmark.shared.audit.problem import Problem
from ttmark.shared.audit.record import read_record
from ttmark.shared.keys.revealed_key import RevealedKey

_PUBLISHING = ("key.create", "key.import", "key.rotate")
_WARNING = (
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
        typer.Option(
            help="An export of the audit trail with the record of the version's making, if that was pruned."
        ),
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
    typer.echo(_WARNING.format(file=out, version=version, key_id=key_id), err=True)


def _revealed(key_id: str, version: int, trail: Path | None) -> bytes:
    async def command(store: KeyStore) -> bytes:
        if not store.audited:
            raise StartupError("a revelation has to be on record: set TTMARK_AUDIT_FOLDER")
        commitment = (await store.ring.describe_mark(key_id, version)).commitment
        if trail is not None:
            lines: Iterable[bytes] = _exported(trail)
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


def _exported(path: Path) -> list[bytes]:
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
