"""`ttmark detect`: looks for the watermark in files, through a running detection service or in bulk."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

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
from ttmark.services.cli.terminal import print_table
from ttmark.services.startup import StartupError, require, warn
from ttmark.shared.client import AsyncClient, Client
from ttmark.shared.features import module_of
from ttmark.shared.languages.words import counted
from ttmark.shared.outgoing import blocking
from ttmark.shared.schemas.detection.detect import DEFAULT_FPR, DetectionResult, Document

if TYPE_CHECKING:
    from ttmark.detect_service.features.files.commands.detect_files import Outcome

PhaseOption = Literal["0", "any"]
Method = Literal["scan", "waterseeker"]

FOUND_CODE = 3
_PATIENCE = 360.0  # seconds: a client's own for each of four files, which may wait for each other
_READ_AS = "Wrong values cost power. Default: the model's own, with any of these or --prompt."


def detect(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files (txt, md, html, docx, odt, rtf, pdf, epub, eml, png, jpeg, webp, tiff, or plain "
            "text), folders, or - for standard input."
        ),
    ] = None,
    mode: AskedMode = "combined",
    key: AskedKeys = None,
    fpr: AskedRate = DEFAULT_FPR,
    phase: Annotated[
        PhaseOption | None,
        typer.Option(help="Where blocks begin (direct): 0 is the first token, any tries each place."),
    ] = None,
    beta: Annotated[float, typer.Option(help="Price of a skipped token (aligned).")] = 5.0,
    method: Annotated[Method, typer.Option(help="How passages are found (localized).")] = "scan",
    normalize: Normalize = True,
    conversation: Annotated[
        bool,
        typer.Option(
            "--conversation",
            help="The files are messages of one conversation, in order; of a .json chat those of the "
            "assistant.",
        ),
    ] = False,
    bulk: Annotated[
        Path | None, typer.Option(help="JSONL, CSV or Parquet with text or token_ids, and perhaps id.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where --bulk writes: .jsonl, .csv or .parquet.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes of --bulk; default: one for each core.")
    ] = None,
    ray: Annotated[str | None, typer.Option(help="Run --bulk on this Ray cluster.")] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Whose keys --bulk tries; default: the only one.")
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(help="What the files continue, or answer with --chat: the writing model reads along."),
    ] = None,
    chat: Annotated[bool, typer.Option("--chat", help="The prompt was a user's message.")] = False,
    temperature: Annotated[
        float | None, typer.Option(help=f"Sampling of the files, as the next four. {_READ_AS}")
    ] = None,
    top_p: Annotated[float | None, typer.Option(help="1 is off.")] = None,
    top_k: Annotated[int | None, typer.Option(help="0 is off.")] = None,
    min_p: Annotated[float | None, typer.Option(help="0 is off.")] = None,
    repetition_penalty: Annotated[float | None, typer.Option(help="1 is off.")] = None,
    fail_on_found: Annotated[
        bool, typer.Option("--fail-on-found", help="Exit code 3 where a watermark is found.")
    ] = False,
    url: DetectUrl = "http://127.0.0.1:8001",
    token: Token = None,
    plain_http: PlainHttp = False,
    as_json: JsonOutput = False,
) -> None:
    """Look for the watermark in files and folders, or with --bulk in every row of a large file.

    A file that cannot be examined is named on standard error and stops no other. Folders are read with all
    below them, without what begins with a point.

    --bulk needs no service: it reads the key store itself (TTMARK_STORE_URL, TTMARK_KEK_FILE), and goes on
    where it stopped.

    Exit codes: 0: every file was examined, or a row of --bulk. 1: a file was not, or no row was. 2: bad
    usage. 3: with --fail-on-found, a watermark was found.
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
    if chat and prompt is None:
        raise typer.BadParameter("--chat takes --prompt, the user's message")
    origin: dict[str, Any] = {
        "prompt": None if chat else prompt,
        "messages": [{"role": "user", "content": prompt}] if chat else None,
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
    }
    origin = {name: value for name, value in origin.items() if value is not None}
    if origin and (conversation or bulk is not None or mode != "combined"):
        raise typer.BadParameter("a prompt and sampling go with none of --conversation, --bulk and --mode")
    if conversation and (bulk is not None or mode != "combined"):
        raise typer.BadParameter("--conversation takes neither --bulk nor --mode")
    if bulk is None:
        if not files:
            raise typer.BadParameter("name a file, or give --bulk")
        if files.count("-") > 1:
            raise typer.BadParameter("standard input (-) can be read once")
    if conversation:
        told = _feature("conversation")
        with one_line_errors(), Client(url, access_token(token), plain_http=plain_http) as client:
            result = told.detect_conversation(files or [], options, client)
        told.show_conversation(result, as_json=as_json)
        found, failed = result.verdict == "watermarked", result.error is not None
    elif bulk is None:
        # Has settings, which other commands start without.
        from ttmark.detect_service.features.files.commands.detect_files import SaidWaits, detect_files

        with one_line_errors():
            request = options.request([Document(text="")], origin)
            asked = AsyncClient(
                url, access_token(token), patience=_PATIENCE, plain_http=plain_http, on_wait=SaidWaits()
            )
            try:
                outcomes, skipped = detect_files(files or [], request, asked)
            finally:
                blocking(asked.__aexit__())
        show([one for one in outcomes if isinstance(one, DetectionResult)], as_json=as_json)
        found, failed = show_rest(outcomes, skipped, as_json=as_json)
    else:
        if files or out is None:
            raise typer.BadParameter("--bulk takes --out, and no further files")
        with one_line_errors():
            require(_bulk_extra(bulk, out, ray))
            options.request([Document(text="")])  # names an option that is out of range
            found, failed = _feature("bulk").detect_in_bulk(bulk, out, options, tenant, workers, ray)
    if found and fail_on_found:
        raise typer.Exit(FOUND_CODE)
    if failed:
        raise typer.Exit(1)


def _feature(name: str) -> ModuleType:
    """What the option of this name does, which is loaded with it.

    Raises:
        StartupError: there is no such feature.
    """
    found = module_of(name, "in_detect")
    if found is None:
        raise StartupError(f"--{name} is no part of this installation")
    return found


def _bulk_extra(source: Path, out: Path, ray: str | None) -> str:
    if ray is not None:
        return "ray"
    return "bulk" if ".parquet" in (source.suffix, out.suffix) else "detect"


def show(results: list[DetectionResult], *, as_json: bool) -> None:
    """Prints results as a table, or as one JSON object in each line."""
    if as_json:
        for result in results:
            typer.echo(result.model_dump_json())
        return
    if not results:
        return
    rows = [
        {
            "file": result.id or "",
            "verdict": result.verdict,
            "p-value": "" if result.p_value is None else f"{result.p_value:.2g}",
            "tokens": str(result.tokens),
            "key": _made_with(result),
            "passages": ", ".join(f"{s.start_char}-{s.end_char}" for s in result.segments or []),
        }
        for result in results
    ]
    print_table(rows, named=True)
    said: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if result.message is not None:
            words = result.message.headline, result.message.explanation
            said.setdefault(words, []).append(result.id or "")
    for (headline, explanation), names in said.items():
        typer.echo(f"{names[0] if len(names) == 1 else f'{len(names)} files'}: {headline}. {explanation}")
    for caution in dict.fromkeys(result.message.caution for result in results if result.message):
        typer.echo(caution)


def show_rest(outcomes: "Sequence[Outcome]", skipped: int, *, as_json: bool) -> tuple[bool, bool]:
    """Names files without an answer, counts all and those `skipped`; whether one was found, one failed."""
    verdicts: Counter[str] = Counter()
    for one in outcomes:
        if isinstance(one, DetectionResult):
            verdicts[one.verdict] += 1
            continue
        verdicts["not examined"] += 1
        warn(f"{one.name}: {one.reason}")
        if as_json:
            typer.echo(json.dumps({"id": one.name, "error": one.reason}))
    if len(outcomes) > 1 or skipped:
        parts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(verdicts.items()))
        passed_over = f"; passed over in folders: {skipped} of other kinds" if skipped else ""
        typer.echo(f"{counted(len(outcomes), 'file')}: {parts}{passed_over}", err=True)
    return verdicts["watermarked"] > 0, verdicts["not examined"] > 0


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
