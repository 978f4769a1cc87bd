"""Tokens that are bytes, as vocabularies write them."""

import re

_VISIBLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
BYTES = {chr(byte): byte for byte in _VISIBLE} | {
    chr(256 + number): byte for number, byte in enumerate(sorted(set(range(256)) - set(_VISIBLE)))
}
"""The letters that byte-level tokenizers write for bytes."""
_FALLBACK = re.compile("<0x([0-9A-Fa-f]{2})>")


def bytes_named(name: str) -> bytes | None:
    """Of a token of byte fallback (`<0xE4>`), or of letters for bytes; None: it is neither."""
    fallback = _FALLBACK.fullmatch(name)
    if fallback:
        return bytes.fromhex(fallback[1])
    return bytes(map(BYTES.__getitem__, name)) if BYTES.keys() >= {*name} else None
