"""The public key that signed files are verified with: from a file, or from the service that signed."""

from pathlib import Path

import httpx

from ttmark.services.cli.files import read_bytes
from ttmark.services.runtime import StartupError
from ttmark.shared.cases.case_key import CasePublicKey, NotACaseKey

_KEY_ROUTE = "/.well-known/ttmark-case-key"
_KEY_BYTES = 10_000


def public_key(path: Path | None, url: str) -> CasePublicKey:
    """The key in the file, or that of the detection service at `url`.

    Raises:
        StartupError: there is none.
    """
    source = str(path) if path is not None else f"{url.rstrip('/')}{_KEY_ROUTE}"
    try:
        return CasePublicKey.from_pem(pem_text(path) if path is not None else _fetched(source))
    except NotACaseKey as error:
        raise StartupError(f"{source}: {error}") from error


def pem_text(path: Path) -> str:
    """The text of a file that should hold a key."""
    return read_bytes(str(path)).decode(errors="replace")


def _fetched(url: str) -> str:
    try:
        response = httpx.get(url, timeout=10)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise StartupError(f"no public key from {url} ({error}); give a file with it") from error
    if response.status_code != 200:
        raise StartupError(f"no public key from {url} (status {response.status_code}); give a file with it")
    return response.text[:_KEY_BYTES]
