"""Keeps secrets and texts of users out of the logs."""

import re
from collections.abc import Mapping
from typing import Any

REDACTED = "[redacted]"
_SENSITIVE_NAMES = frozenset(
    {
        "access_token",
        "api_key",
        "authorization",
        "body",
        "completion",
        "content",
        "cookie",
        "headers",
        "kek",
        "messages",
        "password",
        "plain",
        "prf_key",
        "prf_keys",
        "prompt",
        "secret",
        "text",
        "token",
        "wrapped_secret",
    }
)
_PATTERNS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=:-]+"), rf"\1 {REDACTED}"),
    (re.compile(r"(?i)\b([a-z][a-z0-9+]*://)[^/\s@]*@"), rf"\1{REDACTED}@"),
    (re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{32,}(?![0-9A-Za-z])"), REDACTED),
    # 32 bytes in base64: 43 or 44 digits of which some are capitals, small letters and figures.
    (
        re.compile(r"(?<![\w/+-])(?=\S*\d)(?=\S*[a-z])(?=\S*[A-Z])[\w/+-]{43,44}={0,1}(?![\w/+=-])"),
        REDACTED,
    ),
)
_LONGEST_VALUE = 16_384
# A word without white space, "@" and "=" that is too short for a key: no pattern can match.
_HARMLESS = re.compile(r"[\w./:+-]{0,31}", re.ASCII)


def redact(value: Any, name: str = "") -> Any:
    """`value` as it may be logged under `name`: by name, by type (bytes), and by what strings look like."""
    if name.lower() in _SENSITIVE_NAMES:
        return REDACTED
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value)} bytes]"
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {str(key): redact(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return redact_text(str(value))


def redact_text(text: str) -> str:
    """`text` without credentials in headers, in URLs, and without anything that looks like a key."""
    if _HARMLESS.fullmatch(text):
        return text
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"
