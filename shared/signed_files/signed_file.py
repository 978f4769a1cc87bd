"""Signed files: json that has one spelling, or a page that ends with a comment that signs all before it.

A json file has its keys sorted, is indented by two spaces and has a line end at the end. Another spelling of
the same values is refused, so that every byte of the file counts. The key pair is Ed25519 (RFC 8032), in PEM
files.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)


class NotACaseKey(ValueError):
    """The text is not a key of this kind."""


@dataclass(frozen=True, slots=True)
class CasePublicKey:
    """What a second person verifies cases with."""

    key: Ed25519PublicKey

    @classmethod
    def from_pem(cls, text: str) -> "CasePublicKey":
        """The key in a PEM file.

        Raises:
            NotACaseKey: it holds none.
        """
        try:
            key = load_pem_public_key(text.encode())
        except (ValueError, UnsupportedAlgorithm) as error:
            raise NotACaseKey("not a public key in PEM") from error
        if not isinstance(key, Ed25519PublicKey):
            raise NotACaseKey("not an Ed25519 key")
        return cls(key)

    def pem(self) -> str:
        return self.key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    @property
    def name(self) -> str:
        """Short name of the key: 16 hexadecimal digits of the hash of its 32 bytes."""
        raw = self.key.public_bytes(Encoding.Raw, PublicFormat.Raw)
        return hashlib.sha256(raw).hexdigest()[:16]

    def signed(self, message: bytes, signature: bytes) -> bool:
        try:
            self.key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class CaseKey:
    """The secret half."""

    key: Ed25519PrivateKey

    @classmethod
    def generate(cls) -> "CaseKey":
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_pem(cls, text: str) -> "CaseKey":
        """The key in a PEM file without a password, such as `openssl genpkey -algorithm ed25519` writes.

        Raises:
            NotACaseKey: it holds none.
        """
        try:
            key = load_pem_private_key(text.encode(), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise NotACaseKey("not a private key in PEM without a password") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise NotACaseKey("not an Ed25519 key")
        return cls(key)

    def pem(self) -> str:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    @property
    def public(self) -> CasePublicKey:
        return CasePublicKey(self.key.public_key())

    def sign(self, message: bytes) -> bytes:
        """64 bytes."""
        return self.key.sign(message)


Document = dict[str, Any]

_PAGE_START = b"<!doctype html>"
_SIGNATURE = re.compile(rb"<!-- ttmark-signature ([0-9a-f]{128}) -->\n\Z")


class FileRefused(ValueError):
    """The file is not as it was signed."""


@dataclass(frozen=True)
class SignedKind:
    """One kind of document that is signed, in files of two kinds: a signature of one is none of another.

    Attributes:
        name: of the document in its files; sorts before `signature`.
        formats: what the document's field `format` may say.
    """

    name: str
    formats: tuple[str, ...]

    def file(self, document: Document, key: CaseKey) -> str:
        signature = key.sign(self._of_file + _spelt(document).encode()).hex()
        return _spelt({self.name: document, "signature": signature})

    def page(self, before: str, document: Document, after: str, key: CaseKey) -> str:
        """Html with the document itself between `before` and `after`, signed as a whole."""
        # Inside a script a `<` could end it.
        data = _spelt(document).replace("<", "\\u003c")
        page = f'{before}<script type="application/json" id="{self.name}">{data}</script>{after}'
        return f"{page}<!-- ttmark-signature {key.sign(self._of_page + page.encode()).hex()} -->\n"

    def verified(self, content: bytes, key: CasePublicKey) -> Document:
        """The document in a file of either kind.

        Raises:
            FileRefused: it is not signed with `key`, or was changed since.
        """
        try:
            if content.startswith(_PAGE_START):
                return self._verified_page(content, key)
            text = content.decode()
            parts = self._file.fullmatch(text)
            if parts is None:
                whole = {self.name, "signature"} <= set(json.loads(text))
                raise FileRefused(_RESPELT if whole else self._other)
            indented, signature = parts.groups()
            document = indented.replace("\n  ", "\n")
            if document.replace("\n", "\n  ") != indented:
                raise FileRefused(_RESPELT)
            # Before anything is spelt: what is not genuine costs next to nothing.
            if not key.signed(self._of_file + document.encode() + b"\n", bytes.fromhex(signature)):
                raise FileRefused(_by_whom(json.loads(document), key))
            return self._known(json.loads(document))
        except (UnicodeError, ValueError, TypeError, RecursionError) as error:
            if isinstance(error, FileRefused):
                raise
            raise FileRefused(self._other) from error

    @property
    def _of_file(self) -> bytes:
        return f"ttmark {self.name}\0".encode()

    @property
    def _of_page(self) -> bytes:
        return f"ttmark {self.name} page\0".encode()

    @property
    def _other(self) -> str:
        return f"this is not a {self.name} file"

    @cached_property
    def _file(self) -> re.Pattern[str]:
        """What `_spelt` makes of a document and its signature: the document, two spaces further in."""
        name = re.escape(self.name)
        return re.compile(rf'\{{\n  "{name}": (.*),\n  "signature": "([0-9a-f]{{128}})"\n\}}\n', re.S)

    def _verified_page(self, content: bytes, key: CasePublicKey) -> Document:
        found = _SIGNATURE.search(content)
        if found is None:
            raise FileRefused("the page ends without a signature")
        if not key.signed(self._of_page + content[: found.start()], bytes.fromhex(found[1].decode())):
            raise FileRefused(_CHANGED.format(name=key.name))
        opening = f'<script type="application/json" id="{re.escape(self.name)}">'
        data = re.search(rf"{opening}(.*?)</script>", content.decode(), re.S)
        if data is None:
            raise FileRefused(f"the page holds no {self.name}")
        return self._known(json.loads(data[1]))

    def _known(self, document: Any) -> Document:
        if not isinstance(document, dict) or document.get("format") not in self.formats:
            known = " or ".join(self.formats)
            raise FileRefused(f"it is signed, but its format is not {known}: a newer `ttmark` may read it")
        return document


_RESPELT = "the file was changed after it was signed, if only in its spacing"
_CHANGED = "it was not signed with the key {name}, or was changed since"


def _by_whom(document: Any, key: CasePublicKey) -> str:
    named = document.get("signing_key") if isinstance(document, dict) else None
    if isinstance(named, str) and named != key.name:
        shown = ascii(named[:80])[1:-1]  # a stranger's word
        return f"it names the key {shown}, and this is {key.name}: get the public key of its service"
    return _CHANGED.format(name=key.name)


def _spelt(value: object) -> str:
    return json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


Case = Document
CaseRefused = FileRefused

CASE_FORMAT = "ttmark-case/1"

_CASES = SignedKind("case", (CASE_FORMAT,))
case_file, case_page, verified_case = _CASES.file, _CASES.page, _CASES.verified


def chosen_by_sender(case: Case) -> dict[str, str]:
    """What a case holds by its sender's choice, in words: signed with the rest, it is not our statement."""
    options = {name: value for name, value in case["options"].items() if name != "fpr" and value is not None}
    asked = ", ".join(f"{name} {json.dumps(value)}" for name, value in options.items())
    # Names that we give to requests begin so, and no sender's does.
    named = "" if case["request_id"].startswith("req-") else ", as its sender named it"
    return {"Asked with": asked, "Request": f"{case['request_id']}{named}"}


CONFORMANCE_FORMAT = "ttmark-conformance/1"
ATTACKS_FORMAT = "ttmark-attacks/1"
REPORTS = SignedKind("report", (CONFORMANCE_FORMAT, ATTACKS_FORMAT))
JSON_NAME, PAGE_NAME = "report.json", "report.html"


def verified_report(contents: Sequence[bytes], key: CasePublicKey) -> Document:
    """The report that all these files hold.

    Raises:
        FileRefused: one is not signed with `key` or was changed since, or they are of different reports.
    """
    first, *others = [REPORTS.verified(content, key) for content in contents]
    if any(other != first for other in others):
        raise FileRefused("the files are of different reports, each as it was signed")
    return first


_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def whole_page(title: str, parts: Sequence[str]) -> tuple[str, str]:
    """The page before and after the data that `SignedKind.page` puts into it; `parts` are html."""
    style = Path(__file__).with_name("signed_page.css").read_text()
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
    )
    return head + "\n".join(parts) + "\n</main>\n", "\n</body>\n</html>\n"


def definitions(entries: Mapping[str, str]) -> str:
    """Terms, and what they are."""
    return "<dl>" + "".join(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in entries.items()) + "</dl>"
