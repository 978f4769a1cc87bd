"""`ttmark audit`: the audit trail of services and commands."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from ttmark.services.cli.audit_prune import prune
from ttmark.services.cli.audit_store import trail_segments, verified
from ttmark.services.cli.files import new_closed_file
from ttmark.services.cli.key_store import print_json, run
from ttmark.services.cli.options import JsonOutput
from ttmark.services.settings.cases_and_jobs import CaseSettings
from ttmark.services.startup import StartupError, one_clear_line
from ttmark.shared.audit.chain_check import Problem, Seam, Verification
from ttmark.shared.audit.export import export_lines, verify_export
from ttmark.shared.audit.record import Damaged
from ttmark.shared.cases.signed_file import CasePublicKey, NotACaseKey
from ttmark.shared.languages.words import counted
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

    It is signed with the case key where there is one (TTMARK_CASE_KEY_FILE).
    """
    with one_clear_line():
        key = CaseSettings().load_case_key()
        found = trail_segments()
        lines = export_lines(found, _written(since), _written(until), None if key is None else key.sign)
        try:
            if str(file) == "-":
                _write(lines, sys.stdout.buffer)
            else:
                with new_closed_file(file) as handle:
                    _write(lines, handle)
        except Damaged as error:
            raise StartupError(f"nothing is exported: {error}; see `ttmark audit verify store`") from error
    if str(file) != "-":
        typer.echo(f"wrote {file}", err=True)
    _tell_beginnings({chain: parts[0].first for chain, parts in found.items()}, err=True)


app.command()(prune)


@app.command()
def verify(
    sources: Annotated[
        list[str], typer.Argument(help="Exported files, the older first, and `store`: the folder.")
    ],
    key: Annotated[
        Path | None, typer.Option(help="Public key, in PEM, that has to have signed the exports.")
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Say whether the audit trail is as it was written; exit code 1 when not, with the first bad record.

    Several sources also have to fit together: each goes on where the one before ended, or repeats its end.
    """
    files = [Path(source) for source in sources if source != _STORE]
    if _STORE in sources[:-1]:
        raise typer.BadParameter("`store` comes last, and once", param_hint="SOURCES")
    if key is not None and not files:
        raise typer.BadParameter("goes with an exported file", param_hint="--key")
    seam, public = Seam(), None if key is None else _public_key(key)
    for path in files:
        _verify_file(path, public, seam, as_json=as_json)
    if len(files) < len(sources):
        _tell_folder(run(lambda store: verified(store, seam)), as_json=as_json)
    if len(sources) > 1 and not as_json:
        typer.echo(f"the {len(sources)} parts fit together")


def _tell_folder(found: tuple[Verification, dict[str, KeyStoreError]], *, as_json: bool) -> None:
    result, refused = found
    if as_json:
        print_json({**asdict(result), "refused_heads": {chain: str(why) for chain, why in refused.items()}})
    else:
        typer.echo(_in_order(result.records, len(result.chains)))
        for chain, (number, time) in result.begins.items():
            typer.echo(f"{chain} is whole from record {number} on, of {time}; what was before was removed")
        if result.removed:
            typer.echo(f"of {counted(len(result.removed), 'chain')} every record was removed")
        for chain in result.unanchored:
            typer.echo(f"{chain}: the key store knows no head, so its end was not checked")
    _fail([*result.problems, *(f"{chain}: {why}" for chain, why in refused.items())])


def _verify_file(path: Path, public: CasePublicKey | None, seam: Seam, *, as_json: bool) -> None:
    try:
        with path.open("rb") as handle:
            found = verify_export((line.removesuffix(b"\n") for line in handle), public, seam)
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
    typer.echo(f"{_in_order(held.records, len(held.chains))}, {signed}")
    _tell_beginnings({chain: first for chain, (first, *_) in held.chains.items()}, err=False)


def _tell_beginnings(firsts: Mapping[str, int], *, err: bool) -> None:
    """An export is whole from there on, whether the rest was removed or was not asked for."""
    for chain, first in firsts.items():
        if first > 1:
            typer.echo(f"{chain} begins with record {first}", err=err)


def _in_order(records: int, chains: int) -> str:
    """What was checked and is fine."""
    are = "is" if records == 1 else "are"
    return f"{counted(records, 'record')} in {counted(chains, 'chain')} {are} in order"


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


def _write(lines: Iterator[bytes], handle: BinaryIO) -> None:
    for line in lines:
        handle.write(line + b"\n")


def _written(time: datetime | None) -> str | None:
    return None if time is None else time.replace(tzinfo=UTC).isoformat(timespec="microseconds")
