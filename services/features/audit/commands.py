"""`ttmark audit`: the audit trail of services and commands."""

import fcntl
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from ttmark.services.cli.files import new_closed_file
from ttmark.services.cli.key_store import KeyStore, moment, print_json, run
from ttmark.services.cli.options import JsonOutput
from ttmark.services.cli.terminal import Yes, confirm, print_table
from ttmark.services.features.audit.chain import Removal, removal, written
from ttmark.services.features.audit.chain_check import Problem, Seam, Verification, verify_folder
from ttmark.services.features.audit.export import export_lines, verify_export
from ttmark.services.features.audit.record import Damaged
from ttmark.services.features.audit.segments import ChainSegment, forget, remove, segments
from ttmark.services.features.audit.settings import AuditSettings
from ttmark.services.features.audit.trail import Heads
from ttmark.services.startup import StartupError, one_clear_line
from ttmark.shared.events import Event
from ttmark.shared.languages.words import counted
from ttmark.shared.signed_files.signed_file import CasePublicKey, NotACaseKey
from ttmark.shared.vault.stores.key_store_errors import KeyStoreError

_ATTEMPTS = 3


def trail_folder() -> Path:
    """Where the audit trail lies. Raises StartupError: there is none."""
    folder = AuditSettings().audit_folder
    if folder is None:
        raise StartupError("there is no audit trail: set TTMARK_AUDIT_FOLDER")
    return folder


def trail_segments() -> dict[str, list[ChainSegment]]:
    """Its segments by chain; none where nobody wrote yet. Raises StartupError: there is no trail to read."""
    folder = trail_folder()
    try:
        return segments(folder)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StartupError(f"cannot read the audit trail in {folder} ({error.strerror})") from error


async def verified(
    store: KeyStore, seam: Seam | None = None
) -> tuple[Verification, dict[str, KeyStoreError]]:
    """What is found in the folder, and what is wrong with heads in the store.

    What somebody removes while it is read looks like a beginning that was cut off: it is read again.

    Raises:
        KeyStoreError: the store is away. StartupError: the folder cannot be read.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        # The heads first: what is written meanwhile comes after them.
        anchors, refused = await Heads(store.records, store.kek).read_all()
        try:
            result = verify_folder(trail_segments(), anchors, seam)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StartupError(f"cannot read the audit trail ({error.strerror})") from error
        if not result.problems or attempt == _ATTEMPTS:
            return result, refused
    raise StartupError("the audit trail changes while it is read: try again")


_DAYS = re.compile(r"(?P<days>[1-9]\d{0,4})d", re.ASCII)


@dataclass(frozen=True)
class _Found:
    """What goes by chain, chains whose newest segment stays although it is old, and what is wrong."""

    removals: dict[str, Removal]
    kept: list[str]
    problems: list[str]


def prune(
    keep: Annotated[
        str | None, typer.Option(help="Keep so many days: 400d. Default: TTMARK_AUDIT_KEEP_DAYS.")
    ] = None,
    before: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="Or keep those from this time on (UTC)."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")
    ] = False,
    yes: Yes = False,
    as_json: JsonOutput = False,
) -> None:
    """Remove the oldest records of the audit trail, also those of writers that are gone.

    Export them first (`ttmark audit verify` takes both). A chain with a problem is left alone, as evidence;
    the exit code is then 1.
    """
    with one_clear_line():
        limit = _limit(keep, before)
    found = run(lambda store: _find(store, limit, alone=not dry_run))
    if not dry_run and found.removals:
        records = counted(sum(gone.records for gone in found.removals.values()), "record")
        chains = counted(len(found.removals), "chain")
        confirm(f"{records} of {chains} from before {moment(limit)} UTC will be gone for good.", yes=yes)
        removals = run(lambda store: _remove(store, limit, found))
        found = _Found(removals, found.kept, found.problems)
    _tell(found, limit, dry_run=dry_run, as_json=as_json)


def _limit(keep: str | None, before: datetime | None) -> datetime:
    now = datetime.now(UTC)
    if before is not None:
        if keep is not None:
            raise typer.BadParameter("goes without --keep", param_hint="--before")
        limit = before.replace(tzinfo=UTC)
        if limit > now:
            raise typer.BadParameter("lies in the future", param_hint="--before")
        return limit
    days = AuditSettings().audit_keep_days
    if keep is not None:
        said = _DAYS.fullmatch(keep)
        if said is None:
            raise typer.BadParameter("is a number of days, such as 400d", param_hint="--keep")
        days = int(said["days"])
    elif not days:
        raise StartupError("TTMARK_AUDIT_KEEP_DAYS=0 keeps everything: say --keep or --before")
    return now - timedelta(days=days)


@contextmanager
def _alone() -> Iterator[None]:
    """No other run of this command is in such a context: what one plans, another would take away."""
    folder = trail_folder()
    if not folder.exists():
        yield
        return
    try:
        with (folder / "removal.lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise StartupError(f"cannot use the audit trail in {folder} ({error.strerror})") from error


async def _find(store: KeyStore, limit: datetime, *, alone: bool) -> _Found:
    with _alone() if alone else nullcontext():
        checked, refused = await verified(store)
        problems = [str(problem) for problem in checked.problems]
        problems += [f"{chain}: {why}" for chain, why in refused.items()]
        suspect = {problem.chain for problem in checked.problems} | refused.keys()
        found = _Found({}, [], problems)
        for chain, head in checked.chains.items():
            if chain in suspect:
                continue
            with removal(trail_folder(), chain, written(limit), head) as (gone, kept):
                if gone is not None:
                    found.removals[chain] = gone
                if kept:
                    found.kept.append(chain)
    return found


async def _remove(store: KeyStore, limit: datetime, found: _Found) -> dict[str, Removal]:
    """The trail first, then the key store, then the files: whatever is interrupted can be verified."""
    folder, heads, removed = trail_folder(), Heads(store.records, store.kek), dict[str, Removal]()
    with _alone():
        # Also makes this command's own chain begin a segment of today.
        store.audit(Event("audit.prune", before=written(limit)))
        for chain, planned in found.removals.items():
            try:
                with removal(folder, chain, written(limit), planned.last.head) as (gone, _):
                    if gone is None:
                        continue
                    store.audit(Event("audit.remove", removed=gone.said()))
                    await heads.put_removed(gone.last.head)
                    remove(gone.parts)
                    if gone.all_of_it:
                        forget(folder, gone.last.chain)
            except OSError as error:
                raise StartupError(
                    f"cannot remove records of {chain} ({error.strerror}): run it again"
                ) from error
            removed[chain] = gone
    return removed


def _tell(found: _Found, limit: datetime, *, dry_run: bool, as_json: bool) -> None:
    gone = list(found.removals.values())
    if as_json:
        print_json(
            {
                "before": written(limit),
                "dry_run": dry_run,
                "removed": [one.said() for one in gone],
                "kept": found.kept,
                "problems": found.problems,
            }
        )
    else:
        rows = [
            {
                "CHAIN": one.last.chain,
                "RECORDS": f"{one.first.sequence} to {one.last.sequence}",
                "FROM (UTC)": one.first.time[:16].replace("T", " "),
                "TO (UTC)": one.last.time[:16].replace("T", " "),
            }
            for one in gone
        ]
        print_table(rows, empty=f"no whole segment is from before {moment(limit)} UTC")
        for chain in found.kept:
            typer.echo(f"{chain}: its newest segment stays, because its writer may be running")
        if gone:
            what = counted(sum(one.records for one in gone), "record")
            typer.echo(f"{'would remove' if dry_run else 'removed'} {what} of {counted(len(gone), 'chain')}")
    for problem in found.problems:
        typer.echo(f"ttmark: {problem}; nothing of it is removed", err=True)
    if found.problems:
        raise typer.Exit(1)


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
    from ttmark.detect_service.features.cases.settings import CaseSettings  # other commands need no service

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


def add(groups: Mapping[str, typer.Typer]) -> None:
    """Adds the commands to those of `ttmark`."""
    groups[""].add_typer(app, name="audit")
