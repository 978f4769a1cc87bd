"""`ttmark case`: cases that a detection service signed, and the keys for that."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from ttmark.services.cli.files import (
    new_closed_file,
    pem_text,
    print_signed,
    public_key,
    read_bytes,
    signed_values,
)
from ttmark.services.cli.key_store import print_json
from ttmark.services.cli.options import DetectUrl, JsonOutput
from ttmark.services.startup import StartupError, one_clear_line
from ttmark.shared.signed_files.signed_file import (
    CaseKey,
    CaseRefused,
    Document,
    NotACaseKey,
    chosen_by_sender,
    verified_case,
)

app = typer.Typer(help="Cases: answers in files that a service signed.", no_args_is_help=True)


@app.command()
def verify(
    file: Annotated[str, typer.Argument(help="The case, json or html, or -.")],
    text: Annotated[str | None, typer.Option(help="The file that was checked: is the case about it?")] = None,
    key: Annotated[Path | None, typer.Option(help="Public key in PEM; default: ask the service.")] = None,
    url: DetectUrl = "http://127.0.0.1:8001",
    as_json: JsonOutput = False,
) -> None:
    """Say whether a service signed a case as it is; exit code 1 when not.

    Ask the service over https, or keep a copy of its key: the answer is worth as much.
    """
    with one_clear_line():
        public = public_key(key, url)
        try:
            case = verified_case(read_bytes(file), public)
        except CaseRefused as error:
            raise StartupError(f"refused: {error}") from error
        with signed_values():
            document, about = case["document"], "give the text with --text to compare"
            if text is not None:
                _check_text(document, text)
                about = "is the text"
            asked, request = chosen_by_sender(case).values()
            lines = (
                f"genuine: signed with the key {public.name}, and not changed since",
                f"verdict: {case['result']['verdict']}, held to {case['options']['fpr']:g}, {case['route']}",
                f"asked with: {asked}",
                f"checked: {case['issued_at']}, release {case['release']}, request {request}",
                f"{document['content']}: sha256 {document['sha256']} ({about})",
            )
            if as_json:
                print_json({"signed_by": public.name, "text_checked": text is not None, "case": case})
            else:
                print_signed(*lines)


@app.command("new-key")
def new_key(file: Annotated[Path, typer.Argument(help="A new file; TTMARK_CASE_KEY_FILE names it.")]) -> None:
    """Make the secret key that a service signs cases with."""
    made = CaseKey.generate()
    with new_closed_file(file) as handle:
        handle.write(made.pem().encode())
    typer.echo(f"wrote {file}, key {made.public.name}")


@app.command("public-key")
def show_public_key(file: Annotated[Path, typer.Argument(help="The secret key.")]) -> None:
    """Print the public key that belongs to a secret one, for those who verify."""
    with one_clear_line():
        try:
            typer.echo(CaseKey.from_pem(pem_text(file)).public.pem(), nl=False)
        except NotACaseKey as error:
            raise StartupError(f"{file}: {error}") from error


def _check_text(document: Document, name: str) -> None:
    from ttmark.detect_service.features.files.commands.input_files import (
        read_text,  # has settings, which other commands start without
    )

    if document["content"] != "text":
        raise StartupError("refused: the case is about token ids, not about a text")
    text = read_text(name)
    # A browser's text field knows one kind of line end.
    for one in (text, text.replace("\r\n", "\n")):
        if hashlib.sha256(one.encode()).hexdigest() == document["sha256"]:
            return
    raise StartupError(f"refused: the case is genuine, but about another text than {name}")


def add(groups: Mapping[str, typer.Typer]) -> None:
    """Adds the commands to those of `ttmark`."""
    groups[""].add_typer(app, name="case")
