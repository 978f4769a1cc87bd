"""`ttmark detect`: looks for the watermark in files, through a running detection service or in bulk."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from services.cli.options import DetectUrl, JsonOutput, Token, access_token, one_line_errors
from services.runtime import StartupError
from shared.client import TTMarkClient
from shared.schemas.detection import DEFAULT_FPR, MAX_DOCUMENTS, DetectionResult, Document

if TYPE_CHECKING:
    from detect_service.bulk import BulkOptions


class Mode(StrEnum):
    """The three detectors."""

    DIRECT = "direct"
    ALIGNED = "aligned"
    LOCALIZED = "localized"


class Method(StrEnum):
    """The two ways of localized detection."""

    SCAN = "scan"
    WATERSEEKER = "waterseeker"


def detect(
    files: Annotated[
        list[str] | None, typer.Argument(help="Text files in UTF-8; - is standard input.")
    ] = None,
    mode: Annotated[
        Mode, typer.Option(help="direct: unedited; aligned: edited; localized: passages in a longer text.")
    ] = Mode.DIRECT,
    key: Annotated[
        list[str] | None, typer.Option(help="Key id to try; may be repeated; default: all.")
    ] = None,
    fpr: Annotated[float, typer.Option(help="False positive rate per document.")] = DEFAULT_FPR,
    any_phase: Annotated[
        bool, typer.Option("--any-phase", help="The start of the text may be cut off (direct).")
    ] = False,
    beta: Annotated[float, typer.Option(help="Price of a skipped token (aligned).")] = 5.0,
    method: Annotated[Method, typer.Option(help="How passages are found (localized).")] = Method.SCAN,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="Undo invisible characters and look-alike letters.")
    ] = False,
    bulk: Annotated[
        Path | None, typer.Option(help="JSONL or Parquet with text or token_ids, and perhaps id.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where --bulk writes: .jsonl or .parquet.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes of --bulk; default: one for each core.")
    ] = None,
    ray: Annotated[
        str | None, typer.Option(help="Run --bulk on this Ray cluster (an address, auto, or local).")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Whose keys --bulk tries; default: the only one.")
    ] = None,
    url: DetectUrl = "http://127.0.0.1:8001",
    token: Token = None,
    as_json: JsonOutput = False,
) -> None:
    """Look for the watermark in text files, or with --bulk in every row of a large file.

    --bulk needs no service: it reads the key store itself (TTMARK_STORE_URL, TTMARK_KEK_FILE), and goes
    on where it stopped when it is started again.
    """
    from detect_service.bulk import BulkOptions  # half a second that other commands need not wait

    options = BulkOptions(
        mode=mode.value,
        keys=tuple(key) if key else None,
        fpr=fpr,
        normalize=normalize,
        phase="any" if any_phase else 0,
        beta=beta,
        method=method.value,
    )
    if bulk is None:
        if not files:
            raise typer.BadParameter("name a file, or give --bulk")
        show(detect_files(files, options, url, token), as_json=as_json)
        return
    if files or out is None:
        raise typer.BadParameter("--bulk takes --out, and no further files")
    from services.cli.bulk import detect_in_bulk  # opens the key store, which is not wanted elsewhere

    with one_line_errors():
        options.request([Document(text="")])  # names an option that is out of range
        detect_in_bulk(bulk, out, options, tenant, workers, ray)


def detect_files(
    files: list[str], options: "BulkOptions", url: str, token: str | None
) -> list[DetectionResult]:
    """The service's results for each file."""
    results: list[DetectionResult] = []
    with one_line_errors(), TTMarkClient(url, access_token(token)) as client:
        for start in range(0, len(files), MAX_DOCUMENTS):
            documents = [
                Document(id=name, text=read_text(name)) for name in files[start : start + MAX_DOCUMENTS]
            ]
            results += client.detect(options.request(documents)).results
    return results


def show(results: list[DetectionResult], *, as_json: bool) -> None:
    """Prints results as a table, or as one JSON object in each line."""
    if as_json:
        for result in results:
            typer.echo(result.model_dump_json())
        return
    table = Table("file", "verdict", "p-value", "tokens", "key", "passages")
    for result in results:
        p_value = "" if result.p_value is None else f"{result.p_value:.2g}"
        name = f"{result.key.key_id} v{result.key.version}" if result.key else ""
        passages = ", ".join(f"{s.start_char}-{s.end_char}" for s in result.segments or [])
        table.add_row(result.id, result.verdict, p_value, str(result.tokens), name, passages)
    Console().print(table)


def read_text(name: str) -> str:
    """The text of a file, or of standard input for `-`.

    Raises:
        StartupError: the file cannot be read or is not UTF-8.
    """
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode()
    except OSError as error:
        raise StartupError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StartupError(f"{name} is not UTF-8 text") from error
