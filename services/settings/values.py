"""Kinds of values that settings have. Each refuses what nobody can mean, without repeating it."""

import os
import re
import shlex
import stat
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, AnyHttpUrl, BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic_settings import NoDecode

from ttmark.services.state_folder import with_tokenizer

_LONGEST_ADDRESS = 2_000
_LABEL = r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*\.?")
_ADDRESS: TypeAdapter[AnyHttpUrl] = TypeAdapter(AnyHttpUrl)


def is_host(text: str) -> bool:
    """Whether it is the name of a host, or an address of version 4 or 6."""
    try:
        ip_address(text)
    except ValueError:
        return _HOST_NAME.fullmatch(text) is not None
    return True


def _host(value: str) -> str:
    if not is_host(value):
        raise ValueError("a host is its name or its address")
    return value


def web_address(value: str) -> str:
    """The address of a service.

    Raises:
        ValueError: it is none.
    """
    try:
        _ADDRESS.validate_python(value)
    except ValidationError:
        raise ValueError("an address is http://host:port or https://host:port") from None
    return value


def _no_service_link(value: object) -> object:
    if isinstance(value, str) and "://" in value:
        raise ValueError(
            "Kubernetes sets this for a Service of that name: set enableServiceLinks: false in the pod"
        )
    return value


def _is_folder(path: Path) -> bool | None:
    """Of what there is at the path; None where there is nothing.

    Raises:
        ValueError: that cannot be told.
    """
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None


def _file(value: Path) -> Path:
    is_folder = _is_folder(value)
    if is_folder is None:
        raise ValueError("there is no such file")
    if is_folder:
        raise ValueError("a file is needed, and this is a folder")
    if not os.access(value, os.R_OK):
        raise ValueError("cannot be read: Permission denied")
    return value


def have_folder(folder: Path) -> Path:
    """The folder.

    Raises:
        ValueError: there is none; the message says how to make it.
    """
    is_folder = _is_folder(folder)
    if is_folder is None:
        raise ValueError(f"there is no such folder: mkdir -p {shlex.quote(str(folder))}")
    if not is_folder:
        raise ValueError("a folder is needed, and this is a file")
    return folder


def _file_to_be(value: Path) -> Path:
    have_folder(value.parent)
    if _is_folder(value):
        raise ValueError("a file is needed, and this is a folder")
    return value


def _split(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


Amount = Annotated[int, Field(ge=0, le=10**12)]
AtOnce = Annotated[int, Field(ge=1, le=4_096)]
"""What a process makes a thread, a process or a row for."""
Seconds = Annotated[float, Field(gt=0, le=10 * 365 * 86_400)]
Days = Annotated[float, Field(ge=0, le=100 * 365)]
Port = Annotated[int, Field(ge=0, le=65_535), BeforeValidator(_no_service_link)]
Host = Annotated[str, AfterValidator(_host)]
WebAddress = Annotated[str, Field(max_length=_LONGEST_ADDRESS), AfterValidator(web_address)]
ReadableFile = Annotated[Path, AfterValidator(_file)]
Folder = Annotated[Path, AfterValidator(have_folder)]
TokenizerFolder = Annotated[Path, AfterValidator(with_tokenizer)]
WritableFile = Annotated[Path, AfterValidator(_file_to_be)]
Separated = (NoDecode, BeforeValidator(_split))
"""Of a tuple whose members commas separate in the variable: `Annotated[tuple[str, ...], *Separated]`."""


_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s]+")


def _check(origins: tuple[str, ...]) -> tuple[str, ...]:
    for origin in origins:
        # A browser sends neither path nor closing slash: with one the origin would never match.
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise ValueError("each is an origin such as https://app.example.org, without a path or /, or *")
    return origins


Origins = Annotated[tuple[str, ...], *Separated, AfterValidator(_check)]
