"""`ttmark keys`: watermark keys and the life cycle of their versions."""

import asyncio
import time
from pathlib import Path
from typing import Annotated

import orjson
import typer
from pydantic import ValidationError

from services.cli.key_store import JsonOutput, key_store, moment, print_table, run
from services.cli.key_upkeep import backup, restore, rewrap, verify
from shared.keys import KeyInfo, ReplicasBehind
from shared.schemas.profile import Profile
from shared.tokenization import TextTokenizer, TokenizerMissing

app = typer.Typer(help="Watermark keys and their versions.", no_args_is_help=True)

_POLL_SECONDS = 0.5

KeyId = Annotated[str, typer.Argument(metavar="KEY", help="Key id.")]
Version = Annotated[int, typer.Argument(metavar="VERSION", help="Number of the version.")]


@app.command()
def create(
    key_id: KeyId,
    tokenizer: Annotated[Path, typer.Option(help="Folder with the tokenizer.json of the model.")],
    tenant: Annotated[str, typer.Option(help="Who may generate and detect with the key.")] = "local",
    scheme: Annotated[str, typer.Option(help="Watermark scheme.")] = "synthid",
    block_size: Annotated[int, typer.Option(help="Tokens that are watermarked together (r).")] = 2,
    context_width: Annotated[
        int | None, typer.Option(help="Preceding tokens that seed a block (H); default: the scheme's.")
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Parameter of the scheme; may be repeated.")
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Create a key whose first version is in use at once."""
    profile = _profile(scheme, block_size, context_width, tokenizer, param or [])

    async def command() -> KeyInfo:
        async with key_store() as keys:
            return await keys.ring.create(key_id, tenant=tenant, profile=profile)

    _show([run(command())], as_json=as_json, single=True)


@app.command("list")
def list_keys(
    tenant: Annotated[str | None, typer.Option(help="Only this tenant's keys.")] = None,
    as_json: JsonOutput = False,
) -> None:
    """List keys and versions; never secrets."""

    async def command() -> list[KeyInfo]:
        async with key_store() as keys:
            return await keys.ring.list(tenant=tenant)

    _show(run(command()), as_json=as_json)


@app.command()
def rotate(key_id: KeyId, as_json: JsonOutput = False) -> None:
    """Add a pending version; promote it once every replica knows it."""

    async def command() -> KeyInfo:
        async with key_store() as keys:
            return await keys.ring.rotate(key_id)

    _show([run(command())], as_json=as_json, single=True)


@app.command()
def promote(
    key_id: KeyId,
    version: Version,
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait until every replica knows it.")
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Do not mind replicas that do not know it.")] = False,
    as_json: JsonOutput = False,
) -> None:
    """Generate with a pending version from now on; the previous one stays detectable."""

    async def command() -> KeyInfo:
        deadline = time.monotonic() + wait
        async with key_store() as keys:
            while True:
                try:
                    return await keys.ring.promote(key_id, version, force=force)
                except ReplicasBehind:
                    if time.monotonic() >= deadline:
                        raise
                await asyncio.sleep(_POLL_SECONDS)

    _show([run(command())], as_json=as_json, single=True)


@app.command()
def retire(key_id: KeyId, version: Version, as_json: JsonOutput = False) -> None:
    """Stop detecting a version that is no longer generated with."""

    async def command() -> KeyInfo:
        async with key_store() as keys:
            return await keys.ring.retire(key_id, version)

    _show([run(command())], as_json=as_json, single=True)


@app.command()
def disable(key_id: KeyId, version: Version, as_json: JsonOutput = False) -> None:
    """Take a compromised version out of use at once and for good."""

    async def command() -> KeyInfo:
        async with key_store() as keys:
            return await keys.ring.disable(key_id, version)

    _show([run(command())], as_json=as_json, single=True)


app.command()(rewrap)
app.command()(backup)
app.command()(restore)
app.command()(verify)


def _profile(
    scheme: str, block_size: int, context_width: int | None, tokenizer: Path, parameters: list[str]
) -> Profile:
    try:
        fingerprint = TextTokenizer.load(tokenizer).fingerprint
        return Profile.model_validate(
            {
                "scheme": scheme,
                "block_size": block_size,
                "context_width": context_width,
                "parameters": dict(map(_parameter, parameters)),
                "tokenizer_fingerprint": fingerprint,
            }
        )
    except TokenizerMissing as error:
        raise typer.BadParameter(str(error), param_hint="--tokenizer") from error
    except ValidationError as error:
        raise typer.BadParameter(
            "; ".join(detail["msg"].removeprefix("Value error, ") for detail in error.errors())
        ) from error


def _parameter(text: str) -> tuple[str, int | float | bool]:
    name, separator, value = text.partition("=")
    if separator and value in ("true", "false"):
        return name, value == "true"
    for number in (int, float):
        try:
            return name, number(value)
        except ValueError:
            continue
    raise typer.BadParameter(f"{text!r} is not NAME=NUMBER or NAME=true|false", param_hint="--param")


def _show(keys: list[KeyInfo], *, as_json: bool, single: bool = False) -> None:
    if as_json:
        documents = [_document(key) for key in keys]
        typer.echo(orjson.dumps(documents[0] if single else documents).decode())
        return
    rows = [
        [
            key.key_id,
            key.tenant,
            key.profile.profile_id,
            str(version.version),
            version.state.value,
            moment(version.created_at),
            moment(version.changed_at),
        ]
        for key in keys
        for version in key.versions
    ]
    columns = ["KEY", "TENANT", "PROFILE", "VERSION", "STATE", "CREATED (UTC)", "CHANGED (UTC)"]
    print_table(columns, rows, empty="no keys; make one with `ttmark keys create`")


def _document(key: KeyInfo) -> dict[str, object]:
    return {**key.model_dump(mode="json"), "profile_id": key.profile.profile_id}
