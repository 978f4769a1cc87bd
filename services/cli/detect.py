"""`ttmark detect`: looks for the watermark in files, through a running detection service."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from services.cli.options import DetectUrl, JsonOutput, Token, access_token, one_line_errors
from services.runtime import StartupError
from shared.client import TTMarkClient
from shared.schemas.detection import DEFAULT_FPR, MAX_DOCUMENTS, DetectionResult, DirectRequest, Document


def detect(
    files: Annotated[list[str], typer.Argument(help="Text files in UTF-8; - is standard input.")],
    key: Annotated[
        list[str] | None, typer.Option(help="Key id to try; may be repeated; default: all.")
    ] = None,
    fpr: Annotated[float, typer.Option(help="False positive rate per document.")] = DEFAULT_FPR,
    any_phase: Annotated[
        bool, typer.Option("--any-phase", help="The start of the text may be cut off.")
    ] = False,
    url: DetectUrl = "http://127.0.0.1:8001",
    token: Token = None,
    as_json: JsonOutput = False,
) -> None:
    """Look for the watermark in text files."""
    with one_line_errors(), TTMarkClient(url, access_token(token)) as client:
        results: list[DetectionResult] = []
        for start in range(0, len(files), MAX_DOCUMENTS):
            request = DirectRequest(
                inputs=[
                    Document(id=name, text=read_text(name)) for name in files[start : start + MAX_DOCUMENTS]
                ],
                keys=key,
                fpr=fpr,
                phase="any" if any_phase else 0,
            )
            results += client.detect_direct(request).results
    if as_json:
        for result in results:
            typer.echo(result.model_dump_json())
        return
    table = Table("file", "verdict", "p-value", "tokens", "key")
    for result in results:
        p_value = "" if result.p_value is None else f"{result.p_value:.2g}"
        name = f"{result.key.key_id} v{result.key.version}" if result.key else ""
        table.add_row(result.id, result.verdict, p_value, str(result.tokens), name)
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
