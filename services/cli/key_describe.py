"""`ttmark keys describe`: a mark as a file that other implementations read, without its key."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from ttmark.services.cli.closed_file import new_closed_file
from ttmark.services.cli.key_store import KeyStore, run
from ttmark.services.runtime import StartupError
from ttmark.shared.keys.portable_mark import MarkSecret, PortableMark

_WARNING = (
    "{file} holds the key of {key_id}: who reads it can forge the mark. Hand it over encrypted; delete it "
    "when it is no longer needed."
)


def describe(
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="Key id.")],
    version: Annotated[
        int | None, typer.Option(help="Number of the version. Default: the one that marks, else the newest.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Name of a model with the tokenizer, for people who read the file.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A new file; default: standard output.")] = None,
    secret_out: Annotated[
        Path | None,
        typer.Option(help="Of another system's key: a new file with the key and what opens the commitment."),
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
        typer.echo(_WARNING.format(file=secret_out, key_id=key_id), err=True)
