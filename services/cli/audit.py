"""`ttmark audit`: the audit trail of services and commands."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from ttmark.services.cli.closed_file import new_closed_file
from ttmark.services.cli.key_store import KeyStore, print_json, run
from ttmark.services.cli.options import JsonOutput
from ttmark.services.runtime import StartupError, one_clear_line
from ttmark.services.settings_cases import CaseSettings
from ttmark.services.settings_keys import KeyStoreSettings
from ttmark.shared.audit.export import export_lines, verify_export
from ttmark.shared.audit.heads import Heads
from ttmark.shared.audit.record import Damaged
from ttmark.shared.audit.segments import Segment, segments
from ttmark.shared.audit.verification import Problem, Verification, verify_folder
from ttmark.shared.cases.case_key import CasePublicKey, NotACaseKey
from ttmark.shared.vault.key_store_errors import KeyStoreError

app = typer.Typer(help="The audit trail: records linked by hash.", no_args_is_help=True)

_STORE = "store"
Day = Annotated[
    datetime | None, typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="A time in UTC.")
]


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="A new file; - is standard output.")],
    since: Day = None,
    until: Day = None,
) -> None:
    """Write the records from SINCE until before UNTIL as JSON lines.

    The last line says what the file holds. It is signed with the case key where there is one
    (TTMARK_CASE_KEY_FILE).
    """
    with one_clear_line():
        key = CaseSettings().load_case_key()
        lines = export_lines(_folder(), _written(since), _written(until), None if key is None else key.sign)
        try:
            if str(file) == "-":
                _write(lines, sys.stdout.buffer)
                return
            with new_closed_file(file) as handle:
                _write(lines, handle)
        except Damaged as error:
            raise StartupError(f"nothing is exported: {error}; see `ttmark audit verify store`") from error
    typer.echo(f"wrote {file}", err=True)


@app.command()
def verify(
    source: Annotated[
        str,
        typer.Argument(help="An exported file, or `store`: the folder, against the key store's heads."),
    ],
    key: Annotated[
        Path | None, typer.Option(help="Public key, in PEM, that has to have signed the export.")
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Say whether the audit trail is as it was written; exit code 1 when not, with the first bad record."""
    if source == _STORE:
        if key is not None:
            raise typer.BadParameter("goes with an exported file", param_hint="--key")
        _tell_folder(run(_verify_store), as_json=as_json)
    else:
        _verify_file(Path(source), key, as_json=as_json)


async def _verify_store(store: KeyStore) -> tuple[Verification, dict[str, KeyStoreError]]:
    # The heads first: what is written meanwhile comes after them.
    heads, problems = await Heads(store.records, store.kek).read_all()
    return verify_folder(_folder(), heads), problems


def _tell_folder(found: tuple[Verification, dict[str, KeyStoreError]], *, as_json: bool) -> None:
    result, refused = found
    if as_json:
        print_json({**asdict(result), "refused_heads": {chain: str(why) for chain, why in refused.items()}})
    else:
        typer.echo(f"{result.records} records in {len(result.chains)} chains are in order")
        for chain in result.unanchored:
            typer.echo(f"{chain}: the key store knows no head, so its end was not checked")
    _fail([*result.problems, *(f"{chain}: {why}" for chain, why in refused.items())])


def _verify_file(path: Path, key: Path | None, *, as_json: bool) -> None:
    public = None if key is None else _public_key(key)
    try:
        with path.open("rb") as handle:
            found = verify_export((line.removesuffix(b"\n") for line in handle), public)
    except OSError as error:
        raise typer.BadParameter(f"cannot read {path}: {error.strerror}") from error
    if isinstance(found, Problem):
        if as_json:
            print_json({"problems": [asdict(found)]})
        _fail([found])
        return
    if as_json:
        print_json({**found.model_dump(), "signed_by": public.name if public else None, "problems": []})
        return
    held = found.export
    signed = f"signed with {public.name}" if public else "whose signature was not looked at (--key)"
    typer.echo(f"{held.records} records in {len(held.chains)} chains are in order, {signed}")


def _fail(problems: list[Problem | str]) -> None:
    for problem in problems:
        typer.echo(f"ttmark: {problem}", err=True)
    if problems:
        raise typer.Exit(1)


def _public_key(path: Path) -> CasePublicKey:
    try:
        return CasePublicKey.from_pem(path.read_text(errors="replace"))
    except (OSError, NotACaseKey) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise typer.BadParameter(f"{path}: {reason}", param_hint="--key") from error


def _folder() -> dict[str, list[Segment]]:
    folder = KeyStoreSettings().audit_folder
    if folder is None:
        raise StartupError("there is no audit trail: set TTMARK_AUDIT_FOLDER")
    try:
        return segments(folder)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StartupError(f"cannot read the audit trail in {folder} ({error.strerror})") from error


def _write(lines: Iterator[bytes], handle: BinaryIO) -> None:
    for line in lines:
        handle.write(line + b"\n")


def _written(time: datetime | None) -> str | None:
    return None if time is None else time.replace(tzinfo=UTC).isoformat(timespec="microseconds")
