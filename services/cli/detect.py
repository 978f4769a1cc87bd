"""`ttmark detect`: looks for the watermark in files, through a running detection service or in bulk."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from ttmark.services.cli.options import DetectUrl, JsonOutput, Token, access_token, one_line_errors
from ttmark.services.extras import require
from ttmark.shared.client import Client
from ttmark.shared.schemas.detection import DEFAULT_FPR, MAX_DOCUMENTS, DetectionResult, Document

if TYPE_CHECKING:
    from ttmark.detect_service.options import DetectionOptions


Mode = Literal["combined", "direct", "aligned", "localized"]
PhaseOption = Literal["0", "any"]
Method = Literal["scan", "waterseeker"]


def detect(
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Files: txt, md, html, docx, pdf; - is a text on standard input."),
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(
            help="combined: all; direct: unedited; aligned: edited; localized: passages in a longer text."
        ),
    ] = "combined",
    key: Annotated[
        list[str] | None, typer.Option(help="Key id to try; may be repeated; default: all.")
    ] = None,
    fpr: Annotated[float, typer.Option(help="False positive rate per document.")] = DEFAULT_FPR,
    phase: Annotated[
        PhaseOption | None,
        typer.Option(
            help="Where blocks begin (direct): 0 is the first token, any tries each place. "
            "Default: any for text, 0 for token ids."
        ),
    ] = None,
    beta: Annotated[float, typer.Option(help="Price of a skipped token (aligned).")] = 5.0,
    method: Annotated[Method, typer.Option(help="How passages are found (localized).")] = "scan",
    normalize: Annotated[
        bool, typer.Option(help="Read texts also without invisible characters and look-alike letters.")
    ] = True,
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
    """Look for the watermark in files, or with --bulk in every row of a large file.

    --bulk needs no service: it reads the key store itself (TTMARK_STORE_URL, TTMARK_KEK_FILE), and goes
    on where it stopped when it is started again.
    """
    from ttmark.detect_service.options import DetectionOptions  # the command line starts without the service

    options = DetectionOptions(
        mode=mode,
        keys=tuple(key) if key else None,
        fpr=fpr,
        normalize=normalize,
        phase=0 if phase == "0" else phase,
        beta=beta,
        method=method,
    )
    if bulk is None:
        if not files:
            raise typer.BadParameter("name a file, or give --bulk")
        show(detect_files(files, options, url, token), as_json=as_json)
        return
    if files or out is None:
        raise typer.BadParameter("--bulk takes --out, and no further files")
    with one_line_errors():
        require(_bulk_extra(bulk, out, ray))
        options.request([Document(text="")])  # names an option that is out of range
        from ttmark.services.cli.bulk import (
            detect_in_bulk,  # opens the key store, which is not wanted elsewhere
        )

        detect_in_bulk(bulk, out, options, tenant, workers, ray)


def _bulk_extra(source: Path, out: Path, ray: str | None) -> str:
    if ray is not None:
        return "ray"
    return "bulk" if ".parquet" in (source.suffix, out.suffix) else "detect"


def detect_files(
    files: list[str], options: "DetectionOptions", url: str, token: str | None
) -> list[DetectionResult]:
    """The service's results for each file."""
    results: list[DetectionResult] = []
    with one_line_errors(), Client(url, access_token(token)) as client:
        from ttmark.services.cli.input_files import (
            read_texts,
        )  # has settings, which other commands start without

        for start in range(0, len(files), MAX_DOCUMENTS):
            names = files[start : start + MAX_DOCUMENTS]
            documents = [
                Document(id=name, text=text) for name, text in zip(names, read_texts(names), strict=True)
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
        name = _made_with(result)
        passages = ", ".join(f"{s.start_char}-{s.end_char}" for s in result.segments or [])
        table.add_row(result.id, result.verdict, p_value, str(result.tokens), name, passages)
    Console().print(table)
    said = [(result.id, result.message) for result in results if result.message is not None]
    for name, words in said:
        typer.echo(f"{name}: {words.headline}. {words.explanation}")
    for caution in dict.fromkeys(words.caution for _, words in said):
        typer.echo(caution)


def _made_with(result: DetectionResult) -> str:
    key = result.key
    if key is None:
        return ""
    name = f"{key.key_id} v{key.version}"
    if key.payload is not None:
        return f"{name} payload {key.payload}"
    if key.pool_key is None:
        return name
    more = (result.pool_keys_found or 1) - 1
    return f"{name} #{key.pool_key}" + (f" and {more} more" if more else "")
