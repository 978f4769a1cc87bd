"""`ttmark jobs`: thousands of documents to a detection service, answered in the background."""

import math
from pathlib import Path
from typing import Annotated

import orjson
import typer

from ttmark.services.cli.key_store import tell
from ttmark.services.cli.options import (
    AskedKeys,
    AskedMode,
    AskedRate,
    DetectUrl,
    JsonOutput,
    Normalize,
    PlainHttp,
    Token,
    access_token,
    one_line_errors,
)
from ttmark.services.cli.terminal import ProgressLine, Yes, confirm
from ttmark.services.startup import StartupError, no_start_after, require, warn
from ttmark.shared.client import Client, ClientError
from ttmark.shared.languages.words import counted
from ttmark.shared.schemas.detection.detect import DEFAULT_FPR
from ttmark.shared.schemas.detection.jobs import JobResult, JobStatus

app = typer.Typer(
    help="Detection jobs: thousands of documents, answered in the background.", no_args_is_help=True
)

_POLL_SECONDS = 1.0
JobId = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.")]
Out = Annotated[Path | None, typer.Option(help="New file for the results: .jsonl, .csv or .parquet.")]


@app.command()
def submit(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="One .jsonl, .csv or .parquet file with text or token_ids, and perhaps id; or files "
            "and folders.",
        ),
    ],
    out: Out = None,
    mode: AskedMode = "combined",
    key: AskedKeys = None,
    fpr: AskedRate = DEFAULT_FPR,
    normalize: Normalize = True,
    webhook: Annotated[str | None, typer.Option(help="Address to be told of the end.")] = None,
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Longest time to wait for a busy service.")
    ] = 300,
    idempotency_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="The same command with the same key makes one job in 24 hours."),
    ] = None,
    url: DetectUrl = "http://127.0.0.1:8001",
    token: Token = None,
    plain_http: PlainHttp = False,
) -> None:
    """Send documents as a job and print its id; with --out wait for the results and write them.

    Exit codes: 0: every document was sent, and with --out examined. 1: one was not, or nothing could
    start. 2: bad usage.
    """
    from ttmark.detect_service.features.jobs.commands.job_documents import (  # has settings
        job_documents,
        submitted,
    )

    with one_line_errors(), _client(url, token, plain_http, patience=wait) as client:
        _check(out)
        readable, unreadable, skipped = job_documents(sources)
        for one in unreadable:
            warn(f"{one.name}: {one.reason}")
        if skipped:
            typer.echo(f"passed over in folders: {skipped} of other kinds", err=True)
        if not readable:
            raise StartupError("there is no document to send")
        options = {"mode": mode, "keys": key or None, "fpr": fpr, "normalize": normalize, "webhook": webhook}
        try:
            made, refused = submitted(client, readable, options, idempotency_key)
        except Client.Refused as error:
            if error.retry_after is None:
                raise
            raise StartupError(
                f"{error} The service can be asked again in {math.ceil(error.retry_after)} s, and --wait is "
                f"{wait:g}: give it more, or send fewer documents"
            ) from error
        for one in refused:
            warn(f"{one.name}: {one.reason}")
        typer.echo(made.id)
        failed = _results(client, made.id, out, wait=True) if out is not None else 0
    if failed or refused or unreadable:
        raise typer.Exit(1)


@app.command()
def status(
    job: JobId,
    url: DetectUrl = "http://127.0.0.1:8001",
    token: Token = None,
    plain_http: PlainHttp = False,
    as_json: JsonOutput = False,
) -> None:
    """Say how many documents of a job are answered."""
    with one_line_errors(), _client(url, token, plain_http) as client:
        now = client.job(job)
    tell(now.model_dump(), _said(now), as_json=as_json)


@app.command()
def results(
    job: JobId,
    out: Out = None,
    now: Annotated[bool, typer.Option("--now", help="Do not wait: what is answered so far.")] = False,
    url: DetectUrl = "http://127.0.0.1:8001",
    token: Token = None,
    plain_http: PlainHttp = False,
) -> None:
    """Wait for a job's end and write a row for each document, as `ttmark detect --bulk` does.

    Rows go to standard output as JSON, or to --out. Exit code 1 where a document was not examined.
    """
    with one_line_errors(), _client(url, token, plain_http) as client:
        _check(out)
        failed = _results(client, job, out, wait=not now)
    if failed:
        raise typer.Exit(1)


@app.command()
def cancel(
    job: JobId,
    yes: Yes = False,
    url: DetectUrl = "http://127.0.0.1:8001",
    token: Token = None,
    plain_http: PlainHttp = False,
) -> None:
    """End a job, and forget its documents and results."""
    with one_line_errors(), _client(url, token, plain_http) as client:
        client.job(job)  # or says that there is none, before anybody is asked
        confirm(f"The results of the job {job} will be gone.", yes=yes)
        client.delete_job(job)
    typer.echo(f"cancelled {job}")


def _client(url: str, token: str | None, plain_http: bool, *, patience: float = 90) -> Client:
    def say(seconds: float, error: ClientError) -> None:
        warn(f"{str(error).removesuffix('.')}; trying again in {math.ceil(seconds)} s")

    return Client(url, access_token(token), patience=patience, plain_http=plain_http, on_wait=say)


def _check(out: Path | None) -> None:
    require("bulk" if out is not None and out.suffix == ".parquet" else "detect")
    # It has the service, which other commands start without.
    from ttmark.detect_service.features.bulk.input_formats import BulkError
    from ttmark.detect_service.features.bulk.output_file import check_output

    if out is not None:
        with no_start_after(BulkError):
            check_output(out)


def _results(client: Client, job_id: str, out: Path | None, *, wait: bool) -> int:
    """How many of the documents whose rows were written were not examined."""
    if wait:
        _wait(client, job_id)
    failed = 0
    if out is None:
        for one in client.iter_job_results(job_id):
            failed += one.error is not None
            typer.echo(_row(one))
        return failed
    from ttmark.detect_service.features.bulk.output_file import complete

    rows = out.with_name(out.name + ".rows")
    with no_start_after(OSError):
        with rows.open("wb") as file:
            for one in client.iter_job_results(job_id):
                failed += one.error is not None
                file.write(_row(one) + b"\n")
        complete(rows, out)
    return failed


def _wait(client: Client, job_id: str) -> None:
    with ProgressLine() as line:

        def show(now: JobStatus) -> None:
            line.update(now.answered, now.answered / now.documents)

        end = client.wait_for_job(job_id, show, poll_seconds=_POLL_SECONDS)
    typer.echo(_said(end), err=True)


def _row(one: JobResult) -> bytes:
    from ttmark.detect_service.features.bulk.row_format import error_row, result_row

    if one.result is not None:
        return orjson.dumps(result_row(one.index, one.id, one.result))
    return orjson.dumps(error_row(one.index, one.id, one.error.message if one.error else "no answer"))


def _said(now: JobStatus) -> str:
    failed = f", {now.failed} not examined" if now.failed else ""
    return f"{now.id} {now.status}: {now.answered} of {counted(now.documents, 'document')} answered{failed}"
