"""`ttmark case`: cases that a detection service signed, the keys for that, and what earlier releases kept."""

import hashlib
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
from ttmark.services.cli.key_store import KeyStore, print_json, run
from ttmark.services.cli.options import DetectUrl, JsonOutput
from ttmark.services.cli.terminal import Yes, confirm
from ttmark.services.kept_before import kept_beside, open_all
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.startup import StartupError, no_start_after, one_clear_line
from ttmark.shared.cases.signed_file import (
    CaseKey,
    CaseRefused,
    Document,
    NotACaseKey,
    chosen_by_sender,
    verified_case,
)
from ttmark.shared.vault.audit_events import AuditEvent

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


@app.command("export-kept")
def export_kept(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new one, for the files.")],
    lose_unreadable: Annotated[
        bool, typer.Option("--lose-unreadable", help="Delete what no key at hand opens, too.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Write cases that an earlier release kept into files, and delete all that it kept beside the key store.

    FOLDER/TENANT/ID.json is a case, for `ttmark case verify`; FOLDER/queue.jsonl has what the queue held.
    """

    async def command(keys: KeyStore) -> None:
        kept = kept_beside(KeyStoreSettings().url())
        try:
            records = await kept.read()
            found = await open_all(records, keys.kek)
            if found.unreadable and not lose_unreadable:
                raise StartupError(
                    f"nothing was deleted: {len(found.unreadable)} records do not open, the first is "
                    f"{found.unreadable[0]}. Add the older key-encryption key, or say --lose-unreadable"
                )
            what = f"{len(found.cases)} cases and {len(found.items)} items of a queue"
            if records:
                confirm(f"{what} go to {folder}. Nothing of them stays beside the key store.", yes=yes)
                found.write(folder)
            await kept.delete()
        finally:
            await kept.close()
        for tenant in sorted({tenant for tenant, _ in found.cases}):
            keys.audit(AuditEvent("case.export", tenant=tenant))
        typer.echo(f"wrote {what} to {folder}" if records else "there was nothing")

    with one_clear_line(), no_start_after(OSError):
        run(command)


def _check_text(document: Document, name: str) -> None:
    from ttmark.services.cli.input_files import read_text  # has settings, which other commands start without

    if document["content"] != "text":
        raise StartupError("refused: the case is about token ids, not about a text")
    text = read_text(name)
    # A browser's text field knows one kind of line end.
    for one in (text, text.replace("\r\n", "\n")):
        if hashlib.sha256(one.encode()).hexdigest() == document["sha256"]:
            return
    raise StartupError(f"refused: the case is genuine, but about another text than {name}")
