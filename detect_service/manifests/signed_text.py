"""Whether a text is the one that a manifest was signed for."""

import base64
import binascii
import hashlib
import unicodedata
from typing import NamedTuple

from ttmark.shared.schemas.manifests import Binding

_HASHES = {"sha256": hashlib.sha256, "sha384": hashlib.sha384, "sha512": hashlib.sha512}


class SignedSpan(NamedTuple):
    """The signed text in what stands before its manifest.

    Attributes:
        whole: whether all but white space is signed.
        start, end: characters of the text before the manifest; None where its spelling differs from the
            signed one (NFC, line ends), so that places cannot be told.
    """

    whole: bool
    start: int | None
    end: int | None


def signed_span(before: str, after: str, wrapper_bytes: int, binding: Binding) -> SignedSpan | None:
    """What the binding's hash covers; None: neither the text nor its end before the manifest.

    The standard hashes the whole asset. A passage that was pasted into a longer text ends where its manifest
    begins and is as long as the binding says, so that it is known as well.

    Args:
        before: visible text before the manifest.
        after: visible text behind it.
        wrapper_bytes: size of the wrapper in UTF-8; another than the signed one was changed.
    """
    if binding.alg not in _HASHES or binding.length != wrapper_bytes:
        return None
    try:
        expected = base64.b64decode(binding.hash, validate=True)
    except binascii.Error:
        return None

    def matches(*parts: bytes) -> bool:
        digest = _HASHES[binding.alg]()
        for part in parts:
            digest.update(part)
        return digest.digest() == expected

    composed = unicodedata.normalize("NFC", before)
    behind = unicodedata.normalize("NFC", after).encode()
    for text in dict.fromkeys((composed, composed.replace("\r\n", "\n"))):
        data = text.encode()
        if len(data) < binding.start:
            continue
        if len(data) == binding.start and matches(data, behind):
            return SignedSpan(whole=True, start=0, end=len(before))
        signed = data[len(data) - binding.start :]
        if signed and matches(signed):
            left_out = text[: len(text) - len(signed.decode(errors="ignore"))]
            whole = not left_out.strip() and not after.strip()
            placed = text == before
            return SignedSpan(whole, len(left_out) if placed else None, len(before) if placed else None)
    return None
