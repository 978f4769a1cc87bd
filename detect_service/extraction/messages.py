"""What the service and its worker processes say to each other: a line of JSON, then as many bytes as it says.

Nothing is unpickled: a worker that a file has taken over can answer with a wrong text at worst.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import get_args

from ttmark.detect_service.extraction.extraction import Part, Reason

LONGEST_LINE = 4_096
_REASONS = (None, *get_args(Reason))


@dataclass(frozen=True, slots=True)
class FileHead:
    """Goes before the content of a file.

    Attributes:
        size: bytes of content.
    """

    filename: str
    size: int


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """Goes before the text of a file, or says why there is none.

    Attributes:
        size: bytes of text in UTF-8, or of several texts as `parts_bytes` writes them.
        several: whether it is several.
        reason: None if there is a text.
        limit: whether the reason is a limit.
    """

    size: int = 0
    several: bool = False
    encoding: str | None = None
    reason: Reason | None = None
    limit: bool = False
    message: str = ""


def line(head: FileHead | AnswerHead) -> bytes:
    """The head as one line."""
    return json.dumps(asdict(head)).encode("ascii") + b"\n"


def file_head(data: bytes) -> FileHead:
    """The head in a line that `line` wrote."""
    return FileHead(**json.loads(data))


def answer_head(data: bytes) -> AnswerHead:
    """The head in a line of a worker, which is not trusted.

    Raises:
        ValueError: the line is no such head.
    """
    try:
        head = AnswerHead(**json.loads(data))
    except TypeError as error:
        raise ValueError from error
    types = (
        (head.size, int),
        (head.encoding, str | None),
        (head.limit, bool),
        (head.several, bool),
        (head.message, str),
    )
    if not all(isinstance(value, kind) for value, kind in types):
        raise ValueError
    if head.size < 0 or head.reason not in _REASONS:
        raise ValueError
    return head


def parts_bytes(parts: Sequence[Part]) -> bytes:
    """Several texts."""
    return json.dumps([asdict(part) for part in parts]).encode("ascii")


def read_parts(data: bytes) -> tuple[Part, ...]:
    """The texts in what a worker sent, which is not trusted.

    Raises:
        ValueError: they are no such texts.
    """
    try:
        parts = tuple(Part(**fields) for fields in json.loads(data))
    except TypeError as error:
        raise ValueError from error
    for part in parts:
        if not (
            isinstance(part.name, str) and isinstance(part.text, str) and isinstance(part.problem, str | None)
        ):
            raise ValueError
    return parts
