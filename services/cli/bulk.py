"""`ttmark detect --bulk`: files of any size, on all cores of this machine."""

import os
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from ttmark.detect_service.bulk.input_formats import BulkError
from ttmark.detect_service.bulk.output_file import BulkJob
from ttmark.detect_service.bulk.run import Progress as BulkProgress
from ttmark.detect_service.bulk.run import Workers, run_bulk
from ttmark.detect_service.options import DetectionOptions
from ttmark.services.bulk_detection import check_keys, only_tenant, open_backend, open_examiner, read_keys
from ttmark.services.startup import no_start_after
from ttmark.shared.languages.words import counted
from ttmark.shared.processor import usable_cores


def detect_in_bulk(
    source: Path,
    out: Path,
    options: DetectionOptions,
    tenant: str | None,
    workers: int | None,
    ray: str | None,
) -> tuple[bool, bool]:
    """Examines every row of `source`; without Ray it goes on where an earlier run was stopped.

    Returns:
        Whether a mark was found in a row, and whether no row could be examined; with Ray neither is known.

    Raises:
        StartupError: the run cannot start.
    """
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes share the cores already
    keys = read_keys()
    tenant = only_tenant(keys, tenant)
    backend = open_backend(keys)  # says what is missing before any process starts
    make = partial(open_examiner, tenant, options)
    if ray is not None:
        from ttmark.detect_service.bulk.ray_job import run_on_ray  # needs an optional dependency

        with no_start_after(BulkError):
            rows = run_on_ray(source, out, make, address=None if ray == "local" else ray)
        typer.echo(f"{counted(rows, 'row')} in {out}", err=True)
        return False, False
    job = BulkJob(source, out, options, keys.fingerprint(tenant))
    count = workers or usable_cores()
    with no_start_after(BulkError):
        check_keys(source, options, tenant, backend)
        with ProgressLine() as line, Workers(count, make) as pool:
            done, tally = run_bulk(job, pool, line.update)
    rate = done.new_rows / max(line.seconds, 1e-9)
    typer.echo(
        f"{counted(tally.rows, 'row')} in {out}: {tally.found} watermarked, {tally.failed} not examined "
        f"({counted(done.new_rows, 'row')} now, {rate:.0f} rows/s)",
        err=True,
    )
    if tally.unread:
        unread = counted(tally.unread, "row")
        typer.echo(f"C2PA manifests, which bulk runs do not verify: {unread}", err=True)
    return tally.found > 0, tally.rows > 0 and tally.failed == tally.rows


@dataclass
class ProgressLine:
    """A bar with rows, rate and remaining time on a terminal; elsewhere a line each ten seconds."""

    started: float = field(default_factory=time.monotonic)
    _spoke: float = 0.0

    def __enter__(self) -> "ProgressLine":
        self._bar = Progress(
            TextColumn("{task.fields[rows]} rows"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]} rows/s"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )
        self._task = self._bar.add_task("", total=1.0, rows=0, rate="-")
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.monotonic() - self.started

    def update(self, progress: BulkProgress) -> None:
        rate = f"{progress.new_rows / self.seconds:.0f}"
        self._bar.update(self._task, completed=progress.share, rows=progress.rows, rate=rate)
        if self._bar.disable and self.seconds - self._spoke >= 10:
            self._spoke = self.seconds
            left = self.seconds * (1 - progress.share) / max(progress.share, 1e-9)
            typer.echo(
                f"{counted(progress.rows, 'row')}, {progress.share:.0%}, {rate} rows/s, {left:.0f} s left",
                err=True,
            )
