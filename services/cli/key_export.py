"""`ttmark keys export`: PRF keys leave the store in a file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ttmark.services.cli.files import new_closed_file
from ttmark.services.cli.key_store import KeyStore, run
from ttmark.services.cli.options import KeyId
from ttmark.services.startup import StartupError
from ttmark.shared.keys.key_files import export_file

STANDARD_OUTPUT = "-"
_EXPORT_WARNING = (
    "{what} holds PRF keys of {key_id}: who reads them can forge its mark and remove it. "
    "Delete it when it is no longer needed; if it leaks, rotate the key and disable its exported versions."
)


def export(
    key_id: KeyId,
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
