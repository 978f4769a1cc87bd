"""Rows in and rows out: what a row of the input holds, and what is said of it."""

from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import ValidationError

from ttmark.shared.schemas.detection import DetectionResult, Document, Segment
from ttmark.shared.schemas.detection_combined import CombinedResult


@dataclass(frozen=True, slots=True)
class InputRow:
    """One row of the input: what it holds, or why it cannot be examined.

    Attributes:
        content: JSON object with `text` or `token_ids`, and perhaps `id`.
    """

    number: int
    content: bytes | None
    error: str | None = None

    @property
    def size(self) -> int:
        """Bytes that the row keeps in memory."""
        return len(self.content or b"")

    def parse(self) -> tuple[str | None, Document | str]:
        """The row's id, and its document or what is wrong with it."""
        if self.content is None:
            return None, self.error or "the row cannot be read"
        try:
            value = orjson.loads(self.content)
        except orjson.JSONDecodeError as error:
            return None, f"not JSON: {error.msg}"
        if not isinstance(value, dict):
            return None, "not a JSON object"
        row_id = value.get("id")
        row_id = None if row_id is None else str(row_id)
        try:
            return row_id, Document(text=value.get("text"), token_ids=value.get("token_ids"))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            reason = str(first["msg"]).removeprefix("Value error, ")
            return row_id, f"{where}: {reason}" if where else reason


_FIGURES = (
    "verdict",
    "p_value",
    "log10_p",
    "z",
    "tokens",
    "scored_blocks",
    "hypotheses",
    "tokens_needed",
    "tokens_typical",
)
"""What a row takes of a result as it is."""


def result_row(number: int, row_id: str | None, result: DetectionResult) -> dict[str, Any]:
    """The output row of an examined document."""
    key = result.key
    return {
        "row": number,
        "id": row_id,
        **{name: getattr(result, name) for name in _FIGURES},
        "key_id": key.key_id if key else None,
        "key_version": key.version if key else None,
        "profile": key.profile if key else None,
        "pool_key": key.pool_key if key else None,
        "payload": key.payload if key else None,
        "pool_keys_found": result.pool_keys_found,
        "basis": result.basis,
        "foreign_marks": None
        if result.foreign_marks is None
        else [m.key.key_id for m in result.foreign_marks],
        "metadata": None if result.metadata is None else [manifest.status for manifest in result.metadata],
        **_where(result),
        "segments": None if result.segments is None else [_segment(s) for s in result.segments],
        "error": None,
    }


def error_row(number: int, row_id: str | None, error: str) -> dict[str, Any]:
    """The output row of a document that was not examined."""
    more = (*_FIGURES, *_KEY, *_BESIDE, *_WHERE, "segments")
    return {"row": number, "id": row_id, **dict.fromkeys(more), "error": error}


_KEY = ("key_id", "key_version", "profile", "pool_key", "payload", "pool_keys_found")
_BESIDE = ("basis", "foreign_marks", "metadata")
_WHERE = ("log10_e", "reader", "scope", "marked_share", "marked_share_low", "marked_share_high", "weak")


def _where(result: DetectionResult) -> dict[str, Any]:
    """What the combined detection alone says."""
    if not isinstance(result, CombinedResult):
        return dict.fromkeys(_WHERE)
    share = result.marked_share
    figures = (share.estimate, share.low, share.high) if share else (None, None, None)
    said = (result.log10_e, result.reader, result.scope, *figures, result.weak)
    return dict(zip(_WHERE, said, strict=True))


def _segment(segment: Segment) -> dict[str, Any]:
    return {
        "start_token": segment.start_token,
        "end_token": segment.end_token,
        "start_char": segment.start_char,
        "end_char": segment.end_char,
        "log10_e_value": segment.log10_e_value,
        "key_id": segment.key.key_id,
        "key_version": segment.key.version,
        "pool_key": segment.key.pool_key,
        "payload": segment.key.payload,
    }
