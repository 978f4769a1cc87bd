"""`ttmark keys import`, a key of the library or of another system; `ttmark keys export`."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from ttmark.services.cli.files import TooLong, bytes_of, new_closed_file
from ttmark.services.cli.key_store import KeyStore, moment, run, tell
from ttmark.services.cli.keys import parameter
from ttmark.services.cli.options import JsonOutput, KeyId, TokenizerOption
from ttmark.services.startup import StartupError
from ttmark.shared.keys.key_files import LibraryKeyFile, NotAKeyFile, export_file
from ttmark.shared.keys.key_records import KeyInfo
from ttmark.shared.schemas.foreign_profile import ForeignProfile
from ttmark.shared.tokenization import TextTokenizer, TokenizerMissing
from ttmark.shared.watermark.foreign.schemes import FOREIGN_SCHEMES

_MOST_BYTES = 65_536


def import_key(
    key_id: KeyId,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="JSON with the key and the parameters; - for input.")
    ],
    tokenizer: TokenizerOption,
    scheme: Annotated[
        str | None,
        typer.Option(
            help=f"Of another system: one of {', '.join(FOREIGN_SCHEMES)}. A library key has its own."
        ),
    ] = None,
    tenant: Annotated[str, typer.Option(help="Who may detect with the key.")] = "local",
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Parameter that is no secret; may be repeated."),
    ] = None,
    as_json: JsonOutput = False,
) -> None:
    """Import a key of the library, which marks here too, or of another system, to look for its texts alone.

    With --scheme the file is the other system's configuration, for example
    {"key": 123, "context_width": 4}. Delete the file when it is no longer needed.
    """
    if scheme is None:
        _import_library_key(key_id, file, tokenizer, tenant, as_json=as_json)
        return
    if scheme not in FOREIGN_SCHEMES:
        raise typer.BadParameter(f"choose {', '.join(FOREIGN_SCHEMES)}", param_hint="--scheme")
    kind, given = FOREIGN_SCHEMES[scheme], _read(file)
    for name, value in map(parameter, param or []):
        if name in kind.secrets:
            raise typer.BadParameter(
                f"{name} is a secret, and others see a command line: put it into the file",
                param_hint="--param",
            )
        given[name] = value
    try:
        parameters, secrets = kind.split(given)
        profile = ForeignProfile(
            scheme=scheme,
            parameters=parameters,
            tokenizer_fingerprint=TextTokenizer.load(tokenizer).fingerprint,
        )
    except TokenizerMissing as error:
        raise typer.BadParameter(str(error), param_hint="--tokenizer") from error
    except ValueError as error:
        raise typer.BadParameter(f"{scheme}: {error}") from None  # its cause may hold what was given
    key = run(
        lambda store: store.ring.create(key_id, tenant=tenant, profile=profile, secrets=secrets), make=True
    )
    _tell(key, f"texts with the mark of {profile.title} are looked for", as_json=as_json)


def _import_library_key(key_id: str, file: str, tokenizer: Path, tenant: str, *, as_json: bool) -> None:
    try:
        own = LibraryKeyFile.of(_read(file))
        profile = own.profile_for(TextTokenizer.load(tokenizer).fingerprint)
    except NotAKeyFile as error:
        raise typer.BadParameter(f"{file}: {error}; of another system's key name --scheme") from None
    except TokenizerMissing as error:
        raise typer.BadParameter(str(error), param_hint="--tokenizer") from error
    secret = bytes.fromhex(own.secret)
    key = run(
        lambda store: store.ring.create(key_id, tenant=tenant, profile=profile, secret=secret), make=True
    )
    meaning = (
        "it marks texts, and those that the library marked are found. Whoever has the file can forge the mark"
    )
    _tell(key, meaning, as_json=as_json)


def _tell(key: KeyInfo, meaning: str, *, as_json: bool) -> None:
    profile_id = key.profile.profile_id
    text = f"imported {key.key_id} at {moment(key.created_at)} UTC ({profile_id}): {meaning}"
    tell({**key.model_dump(mode="json"), "profile_id": profile_id}, text, as_json=as_json)


def _read(file: str) -> dict[str, Any]:
    try:
        given = orjson.loads(bytes_of(file, _MOST_BYTES))
    except (TooLong, orjson.JSONDecodeError):
        given = None
    except OSError as error:
        raise typer.BadParameter(f"cannot read {file}: {error.strerror}") from error
    if not isinstance(given, dict):
        raise typer.BadParameter(f"{file} must hold a JSON object of at most {_MOST_BYTES} bytes")
    return given


STANDARD_OUTPUT = "-"
_EXPORT_WARNING = (
    "{what} holds PRF keys of {key_id}: who reads them can forge its mark and remove it. "
    "Delete it when it is no longer needed; if it leaks, rotate the key and disable its exported versions."
)


def export(
    key_id: KeyId,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A new file, or - for standard output.")],
    i_understand: Annotated[
        str, typer.Option(metavar="KEY", help="The key id once more: who reads the file can forge the mark.")
    ],
    to_terminal: Annotated[
        bool, typer.Option("--to-terminal", help="Write to standard output even if it is a terminal.")
    ] = False,
) -> None:
    """Write the profile and the PRF keys of a key, for a detector of somebody else's.

    Needs the right to change keys and an audit trail (TTMARK_AUDIT_FOLDER); the versions' record says that
    they left.
    """
    if i_understand != key_id:
        raise typer.BadParameter(f"name the key, {key_id}, to confirm", param_hint="--i-understand")
    if file == STANDARD_OUTPUT:
        if is_terminal() and not to_terminal:
            raise typer.BadParameter("standard output is a terminal; give a file, or --to-terminal")
        typer.echo(_exported(key_id), nl=False)
    else:
        with new_closed_file(Path(file)) as handle:
            handle.write(_exported(key_id))
    what = "the output" if file == STANDARD_OUTPUT else file
    typer.echo(_EXPORT_WARNING.format(what=what, key_id=key_id), err=True)


def is_terminal() -> bool:
    return sys.stdout.isatty()


def _exported(key_id: str) -> bytes:
    async def command(store: KeyStore) -> bytes:
        if not store.audited:
            raise StartupError("an export has to be on record: set TTMARK_AUDIT_FOLDER")
        return export_file(*await store.ring.export(key_id))

    return run(command)


def add(groups: Mapping[str, typer.Typer]) -> None:
    """Adds the commands to those of `ttmark`."""
    groups["keys"].command()(export)
    groups["keys"].command("import")(import_key)
