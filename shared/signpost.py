"""Signposts: the deployment that a text itself names, to be asked whether the text is its own.

A visible label has one as words, a C2PA manifest in an assertion that is named by the deployment's host.
"""

import re

DOCUMENT_PATH = "/.well-known/text-provenance.json"
ASSERTION = ".text-provenance"
"""What the name of a manifest's assertion ends in."""
_DEPLOYMENT = r"https://[a-z0-9][a-z0-9.-]{0,252}(?::[0-9]{1,5})?"
_NAMED = re.compile(f"({_DEPLOYMENT}){re.escape(DOCUMENT_PATH)}", re.IGNORECASE)
_HIDDEN = {0xFE00 + byte: byte for byte in range(16)} | {0xE0100 + byte: 16 + byte for byte in range(240)}
"""Bytes of the characters that show nothing, in which a text has a manifest."""
_MOST = 4


def deployment(address: str) -> str:
    """The address of a deployment as signposts have it.

    Raises:
        ValueError: it is more or less than https, a host, and perhaps a port.
    """
    if re.fullmatch(_DEPLOYMENT, address) is None:
        raise ValueError("a signpost is https://host or https://host:port, in small letters")
    return address


def signposts(text: str) -> list[str]:
    """The deployments that a text and the manifests in it name, in order, each once, at most four.

    No signature is looked at: whoever passes a text on may write any address into it.
    """
    named = (found[1].lower() for found in _NAMED.finditer(text.translate(_HIDDEN)))
    return list(dict.fromkeys(named))[:_MOST]
