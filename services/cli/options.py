"""Options and error handling that several commands share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import ValidationError

from ttmark.services.settings.values import web_address
from ttmark.services.startup import StartupError, no_start_after, one_clear_line
from ttmark.shared.client import ClientError

TOKEN_FILE = Path(".ttmark/token")


def _address(value: str) -> str:
    with bad_usage():
        return web_address(value)


def store_url(value: str | None) -> str | None:
    """The URL of a key store that an option names, if it names one.

    Raises:
        typer.BadParameter: it is none.
    """
    from ttmark.services.settings.store import check_store_url  # most commands start without the key store

    if value:
        with bad_usage():
            check_store_url(value)
    return value


def _tokenizer(value: Path) -> Path:
    if value == Path("demo") and not value.is_dir():
        from ttmark.gen_service.demo_model import DEMO_MODEL_PATH

        return DEMO_MODEL_PATH
    return value


def _token(value: str | None) -> str | None:
    if value and not (value.isascii() and value.isprintable()):
        raise typer.BadParameter("an access token begins with ttm_ and has letters, digits and _ alone")
    return value


@contextmanager
def bad_usage() -> Iterator[None]:
    """Turns a ValueError into bad usage of the option whose callback this is."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


GenUrl = Annotated[
    str, typer.Option(envvar="TTMARK_GEN_URL", callback=_address, help="The generation service.")
]
DetectUrl = Annotated[
    str, typer.Option(envvar="TTMARK_DETECT_URL", callback=_address, help="The detection service.")
]
Token = Annotated[
    str | None,
    typer.Option(
        envvar="TTMARK_TOKEN", callback=_token, help="Access token; default: the one of `ttmark up`."
    ),
]
PlainHttp = Annotated[
    bool,
    typer.Option("--plain-http", help="Send the token over http to a host outside your own network, too."),
]
Mode = Literal["combined", "direct", "aligned", "localized"]
AskedMode = Annotated[
    Mode, typer.Option(help="combined: all; direct: unedited; aligned: edited; localized: passages.")
]
AskedKeys = Annotated[
    list[str] | None, typer.Option("--key", help="Key id to try; may be repeated; default: all.")
]
AskedRate = Annotated[float, typer.Option("--fpr", help="False positive rate per document.")]
Normalize = Annotated[bool, typer.Option(help="Read texts also without what hides a mark.")]
KeyId = Annotated[str, typer.Argument(metavar="KEY", help="Key id.")]
TokenizerOption = Annotated[
    Path,
    typer.Option(
        callback=_tokenizer, help="Folder with the model's tokenizer.json; `demo`: the demo model's."
    ),
]
JsonOutput = Annotated[bool, typer.Option("--json", help="Write JSON for programs to read.")]


def access_token(token: str | None) -> str:
    """The given token, or the one that `ttmark up` left in the state folder.

    Raises:
        StartupError: there is neither.
    """
    if token:
        return token
    try:
        return TOKEN_FILE.read_text().strip()
    except OSError as error:
        raise StartupError(
            "no access token: give --token or set TTMARK_TOKEN (`ttmark tokens create`)"
        ) from error


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turns a service's refusal or a bad value into one line and exit code 1."""
    with one_clear_line(), no_start_after(ClientError):
        try:
            yield
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise StartupError(f"{where}: {first['msg']}") from error
