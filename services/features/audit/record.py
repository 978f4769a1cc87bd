"""One record of the audit trail: a line of JSON that ends with the hash of all that stands before it.

The hash is SHA-256 over the very bytes of the line up to `,"hash":"`, with a closing brace, so that checking
it takes no agreement on how JSON is written. `previous` is the hash of the record before, `sequence` its
number from 1 on.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from ttmark.shared.vault.envelope import canonical_json

NO_RECORD = "0" * 64
"""What the first record of a chain has in place of a hash."""
START, CHECKPOINT, LOST, BROKEN = "audit.start", "audit.checkpoint", "audit.lost", "audit.broken"
"""Actions of the trail itself."""

_BEFORE_HASH, _AFTER_HASH = b',"hash":"', b'"}'
_HASH_DIGITS = 64
_TAIL = len(_BEFORE_HASH) + _HASH_DIGITS + len(_AFTER_HASH)


class Damaged(ValueError):
    """The line is not a record as it was written."""


@dataclass(frozen=True, slots=True)
class Head:
    """The newest record of a chain."""

    chain: str
    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class Anchor:
    """A chain's head as the key store knows it, and the newest record that was removed on purpose."""

    head: Head
    removed: Head | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A record whose hash is right; `time` is ISO 8601 in UTC and never before that of the record before."""

    chain: str
    sequence: int
    time: str
    previous: str
    event: Mapping[str, Any]
    hash: str

    @property
    def head(self) -> Head:
        return Head(self.chain, self.sequence, self.hash)


def record_line(before: Head, time: str, event: Mapping[str, Any]) -> tuple[bytes, Head]:
    """The line of the record that follows `before`, without a line end, and what is the head then."""
    sequence = before.sequence + 1
    body = canonical_json(
        {"chain": before.chain, "event": event, "previous": before.hash, "sequence": sequence, "time": time}
    )
    digest = hashlib.sha256(body).hexdigest()
    line = body[:-1] + _BEFORE_HASH + digest.encode() + _AFTER_HASH
    return line, Head(before.chain, sequence, digest)


def read_record(line: bytes) -> Record:
    """The record in a line without its end. Raises Damaged: a byte of it differs from what was written."""
    body, tail = line[:-_TAIL] + b"}", line[-_TAIL:]
    digest = hashlib.sha256(body).hexdigest()
    if tail != _BEFORE_HASH + digest.encode() + _AFTER_HASH:
        raise Damaged("its hash is not that of its contents")
    try:
        return Record(**orjson.loads(line))
    except (orjson.JSONDecodeError, TypeError) as error:
        raise Damaged("it is not a record of an audit trail") from error
