"""`ttmark tokens`: access tokens for both services."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import orjson
import typer

from services.cli.key_store import JsonOutput, key_store, moment, print_table, run
from shared.keys import Scope, TokenInfo, TokenLimits

app = typer.Typer(help="Access tokens.", no_args_is_help=True)

Limit = Annotated[
    int | None, typer.Option(min=0, help="Limit of this token; default: the service's; 0: any.")
]


@app.command()
def create(
    tenant: Annotated[str, typer.Option(help="Whose keys the bearer may use.")] = "local",
    scope: Annotated[
        list[Scope] | None, typer.Option(help="May be repeated; default: generate, detect, detect:evidence.")
    ] = None,
    expires_in_days: Annotated[
        float | None, typer.Option(min=0, help="Days until it expires; default: never.")
    ] = None,
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
    requests_per_minute: Limit = None,
    tokens_per_minute: Limit = None,
    documents_per_minute: Limit = None,
    as_json: JsonOutput = False,
) -> None:
    """Create a token and print it; it is not shown again."""
    scopes = scope or [Scope.GENERATE, Scope.DETECT, Scope.DETECT_EVIDENCE]
    expires_at = None if expires_in_days is None else datetime.now(UTC) + timedelta(days=expires_in_days)

    limits = TokenLimits(
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        documents_per_minute=documents_per_minute,
    )

    async def command() -> tuple[str, TokenInfo]:
        async with key_store() as keys:
            return await keys.registry.create(
                tenant=tenant, scopes=scopes, expires_at=expires_at, label=label, limits=limits
            )

    plain, token = run(command())
    if as_json:
        typer.echo(orjson.dumps({"token": plain, **_document(token)}).decode())
    else:
        typer.echo(plain)


@app.command("list")
def list_tokens(
    tenant: Annotated[str | None, typer.Option(help="Only this tenant's tokens.")] = None,
    as_json: JsonOutput = False,
) -> None:
    """List tokens; never the secret part."""

    async def command() -> list[TokenInfo]:
        async with key_store() as keys:
            return await keys.registry.list(tenant=tenant)

    _show(run(command()), as_json=as_json)


@app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The part between `ttm_` and the next `_`.")],
    as_json: JsonOutput = False,
) -> None:
    """Revoke a token; every service refuses it within seconds."""

    async def command() -> TokenInfo:
        async with key_store() as keys:
            return await keys.registry.revoke(token_id)

    token = run(command())
    if as_json:
        typer.echo(orjson.dumps(_document(token)).decode())
    else:
        _show([token], as_json=False)


def _show(tokens: list[TokenInfo], *, as_json: bool) -> None:
    if as_json:
        typer.echo(orjson.dumps([_document(token) for token in tokens]).decode())
        return
    rows = [
        [
            token.token_id,
            token.tenant,
            " ".join(sorted(token.scopes)),
            _limits(token.limits),
            token.label or "-",
            moment(token.created_at),
            moment(token.expires_at),
            moment(token.revoked_at),
        ]
        for token in tokens
    ]
    columns = [
        "ID",
        "TENANT",
        "SCOPES",
        "LIMITS",
        "LABEL",
        "CREATED (UTC)",
        "EXPIRES (UTC)",
        "REVOKED (UTC)",
    ]
    print_table(columns, rows, empty="no tokens; make one with `ttmark tokens create`")


def _limits(limits: TokenLimits) -> str:
    own = {name.removesuffix("_per_minute"): value for name, value in limits if value is not None}
    return ", ".join(f"{value or 'any'} {name}" for name, value in own.items()) or "-"


def _document(token: TokenInfo) -> dict[str, object]:
    return {**token.model_dump(mode="json"), "scopes": sorted(token.scopes)}
