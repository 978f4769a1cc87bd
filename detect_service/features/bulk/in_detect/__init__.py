"""`ttmark detect --bulk`: files of any size, on all cores of this machine."""

import os
from functools import partial
from pathlib import Path

import typer

from ttmark.detect_service.features.bulk.in_detect.bulk_detection import (
    check_keys,
    only_tenant,
    open_backend,
    open_examiner,
    read_keys,
)
from ttmark.detect_service.features.bulk.input_formats import BulkError
from ttmark.detect_service.features.bulk.output_file import BulkJob
from ttmark.detect_service.features.bulk.run import Workers, run_bulk
from ttmark.detect_service.options import DetectionOptions
from ttmark.services.cli.terminal import ProgressLine
from ttmark.services.startup import no_start_after
from ttmark.shared.cpu import usable_cores
from ttmark.shared.languages.words import counted


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
        from ttmark.detect_service.features.bulk.ray_job import run_on_ray  # needs an optional dependency

        with no_start_after(BulkError):
            rows = run_on_ray(source, out, make, address=None if ray == "local" else ray)
        typer.echo(f"{counted(rows, 'row')} in {out}", err=True)
        return False, False
    job = BulkJob(source, out, options, keys.fingerprint(tenant))
    count = workers or usable_cores()
    with no_start_after(BulkError):
        check_keys(source, options, tenant, backend)
        with ProgressLine() as line, Workers(count, make) as pool:
            done, tally = run_bulk(job, pool, lambda now: line.update(now.rows, now.share, now.new_rows))
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
