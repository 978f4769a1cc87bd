"""`ttmark tokens`: access tokens for both services."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from ttmark.services.cli.key_store import KeyStore, moment, print_json, run, tell
from ttmark.services.cli.options import JsonOutput
from ttmark.services.cli.terminal import Yes, confirm, print_table
from ttmark.shared.access.scopes import DEFAULT_RATES, MOST_RATES, Scope, TokenLimits, TokenUse, checked_rates
from ttmark.shared.access.tokens import TokenInfo
from ttmark.shared.vault.stores.key_store_errors import InvalidToken

app = typer.Typer(help="Access tokens.", no_args_is_help=True)

Limit = Annotated[int | None, typer.Option(min=0, max=10**12, help="Default: the service's; 0: any.")]


@app.command()
def create(
    tenant: Annotated[str, typer.Option(help="Whose keys the bearer may use.")] = "local",
    scope: Annotated[
        list[Scope] | None, typer.Option(help="May be repeated; default: generate, detect, detect:evidence.")
    ] = None,
    expires_in_days: Annotated[
        float | None, typer.Option(min=0, max=36_500, help="Days until it expires; default: never.")
    ] = None,
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
    requests_per_minute: Limit = None,
    tokens_per_minute: Limit = None,
    documents_per_minute: Limit = None,
    rate: Annotated[
        list[float] | None,
        typer.Option(
            help="False positive rate at which it may ask without detect:evidence, such as 1e-3; may be "
            f"repeated, up to {MOST_RATES}; default: {', '.join(f'{one:g}' for one in DEFAULT_RATES)}."
        ),
    ] = None,
    use: Annotated[
        list[TokenUse] | None, typer.Option(help="For the marking policy; may be repeated.")
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Create a token and print it; it is not shown again."""
    scopes = scope or [Scope.GENERATE, Scope.DETECT, Scope.DETECT_EVIDENCE]
    expires_at = None if expires_in_days is None else datetime.now(UTC) + timedelta(days=expires_in_days)
    try:
        rates = checked_rates(rate or DEFAULT_RATES)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.", param_hint="--rate") from error
    limits = TokenLimits(
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        documents_per_minute=documents_per_minute,
    )
    plain, token = run(
        lambda store: store.registry.create(
            tenant=tenant,
            scopes=scopes,
            expires_at=expires_at,
            label=label,
            limits=limits,
            rates=rates,
            uses=use or (),
        ),
        make=True,
    )
    tell({"token": plain, **_document(token)}, plain, as_json=as_json)


@app.command("list")
def list_tokens(
    tenant: Annotated[str | None, typer.Option(help="Only this tenant's tokens.")] = None,
    as_json: JsonOutput = False,
) -> None:
    """List tokens; never the secret part."""
    _show(run(lambda store: store.registry.list(tenant=tenant)), as_json=as_json)


@app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The part between `ttm_` and the next `_`.")],
    yes: Yes = False,
    as_json: JsonOutput = False,
) -> None:
    """Revoke a token; every service refuses it within seconds."""

    async def known(store: KeyStore) -> None:
        if token_id not in {token.token_id for token in await store.registry.list()}:
            raise InvalidToken(f"there is no token {token_id}")

    run(known)
    confirm(f"Whoever uses the token {token_id} is refused within seconds, for good.", yes=yes)
    token = run(lambda store: store.registry.revoke(token_id))
    if as_json:
        print_json(_document(token))
    else:
        _show([token], as_json=False)


def _show(tokens: list[TokenInfo], *, as_json: bool) -> None:
    if as_json:
        print_json([_document(token) for token in tokens])
        return
    rows = [
        {
            "ID": token.token_id,
            "TENANT": token.tenant,
            "SCOPES": " ".join(sorted(token.scopes)),
            "LIMITS": _limits(token),
            "LABEL": token.label or "-",
            "CREATED (UTC)": moment(token.created_at),
            "EXPIRES (UTC)": moment(token.expires_at),
            "REVOKED (UTC)": moment(token.revoked_at),
        }
        for token in tokens
    ]
    print_table(rows, empty="no tokens; make one with `ttmark tokens create`")


def _limits(token: TokenInfo) -> str:
    own = {name.removesuffix("_per_minute"): value for name, value in token.limits if value is not None}
    parts = [f"{value or 'any'} {name}" for name, value in own.items()]
    if token.rates != DEFAULT_RATES:
        parts.append("rates " + " ".join(f"{rate:g}" for rate in token.rates))
    if token.uses:
        parts.append("for " + " and ".join(sorted(token.uses)))
    return ", ".join(parts) or "-"


def _document(token: TokenInfo) -> dict[str, object]:
    return {**token.model_dump(mode="json"), "scopes": sorted(token.scopes), "uses": sorted(token.uses)}
