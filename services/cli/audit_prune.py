"""`ttmark audit prune`: retention of the audit trail, also of writers that are gone."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from ttmark.services.cli.audit_store import trail_folder, verified
from ttmark.services.cli.key_store import KeyStore, moment, print_json, run
from ttmark.services.cli.options import JsonOutput
from ttmark.services.cli.terminal import Yes, confirm, print_table
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.startup import StartupError, one_clear_line
from ttmark.shared.audit.chain import Removal, one_removal_at_a_time, removal, remove_removal, written
from ttmark.shared.audit.trail import Heads
from ttmark.shared.languages.words import counted
from ttmark.shared.vault.audit_events import AuditEvent

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
    """The time from which on records stay."""
    now = datetime.now(UTC)
    if before is not None:
        if keep is not None:
            raise typer.BadParameter("goes without --keep", param_hint="--before")
        limit = before.replace(tzinfo=UTC)
        if limit > now:
            raise typer.BadParameter("lies in the future", param_hint="--before")
        return limit
    days = KeyStoreSettings().audit_keep_days
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
    """No other run of this command is in such a context."""
    folder = trail_folder()
    if not folder.exists():
        yield
        return
    try:
        with one_removal_at_a_time(folder):
            yield
    except OSError as error:
        raise StartupError(f"cannot use the audit trail in {folder} ({error.strerror})") from error


async def _find(store: KeyStore, limit: datetime, *, alone: bool) -> _Found:
    """What is old in chains that are in order."""
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
        store.audit(AuditEvent("audit.prune", before=written(limit)))
        for chain, planned in found.removals.items():
            try:
                with removal(folder, chain, written(limit), planned.last.head) as (gone, _):
                    if gone is None:
                        continue
                    store.audit(AuditEvent("audit.remove", removed=gone.said()))
                    await heads.put_removed(gone.last.head)
                    remove_removal(folder, gone)
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
