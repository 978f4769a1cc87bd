"""`ttmark case store|show|delete`: cases that a detection service keeps."""

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ttmark.services.cli.confirmation import Yes, confirm
from ttmark.services.cli.input_text import read_bytes
from ttmark.services.cli.key_store import KeyStore, moment, print_json, run
from ttmark.services.cli.options import DetectUrl, JsonOutput, Token, access_token, one_line_errors
from ttmark.services.runtime import StartupError, no_start_after, one_clear_line
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.shared.client import Client
from ttmark.shared.vault.audit import AuditEvent

if TYPE_CHECKING:
    from ttmark.detect_service.cases.case_store import CaseStore

_ID = re.compile(r"(?:.*[/=])?([0-9a-f]{32})")
Name = Annotated[str, typer.Argument(metavar="CASE", help="The id of a stored case, or a link to it.")]


def store(
    file: Annotated[str, typer.Argument(help="The case, json; - is standard input.")],
    url: DetectUrl = "http://127.0.0.1:8001",
    token: Token = None,
    as_json: JsonOutput = False,
) -> None:
    """Have the service keep a case, and print a link to it.

    The link opens with a token of the tenant with detect:evidence, or with the one that stored the case.
    """
    with one_line_errors(), no_start_after(UnicodeDecodeError), Client(url, access_token(token)) as client:
        kept = client.store_case(read_bytes(file).decode())
    link = f"{url.rstrip('/')}/#case={kept.id}"
    if as_json:
        print_json({**kept.model_dump(), "link": link})
        return
    typer.echo(f"{link}\nkept until {moment(datetime.fromtimestamp(kept.expires_at, UTC))} UTC")


def show(name: Name, url: DetectUrl = "http://127.0.0.1:8001", token: Token = None) -> None:
    """Print a stored case as it is, for a file or for `ttmark case verify -`."""
    case_id = _case_id(name)
    with one_line_errors(), Client(url, access_token(token)) as client:
        typer.echo(client.stored_case(case_id).case, nl=False)


def delete(
    name: Name,
    tenant: Annotated[
        str | None,
        typer.Option(
            help="As the operator: whose case it is. Needs no service, but the key store's settings."
        ),
    ] = None,
    yes: Yes = False,
    url: DetectUrl = "http://127.0.0.1:8001",
    token: Token = None,
) -> None:
    """Forget a case that this token stored, or with --tenant one that anybody stored."""
    case_id = _case_id(name)
    confirm(f"Nobody will be able to read the case {case_id}.", yes=yes)
    if tenant is None:
        with one_line_errors(), Client(url, access_token(token)) as client:
            client.delete_case(case_id)
    elif not run(lambda keys: _forgotten(keys, tenant, case_id)):
        with one_clear_line():
            raise StartupError(f"tenant {tenant} has no such case")
    typer.echo(f"deleted {case_id}")


def _case_id(name: str) -> str:
    found = _ID.fullmatch(name)
    if found is None:
        raise typer.BadParameter("a case has an id of 32 hexadecimal digits, or a link that ends in it")
    return found[1]


async def _forgotten(keys: KeyStore, tenant: str, case_id: str) -> bool:
    store = _open()
    try:
        deleted = await store.delete(tenant, case_id)
    finally:
        await store.close()
    if deleted:
        keys.audit(AuditEvent("case.delete", tenant=tenant, case_id=case_id))
    return deleted


def _open() -> "CaseStore":
    from ttmark.services.cases import open_case_store  # has the service, which other commands start without

    return open_case_store(KeyStoreSettings().url())
