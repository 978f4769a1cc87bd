"""Rows in and rows out: what a row of the input holds, and what is said of it."""

from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import ValidationError

from ttmark.shared.schemas.detection.detect import CombinedResult, DetectedKey, DetectionResult, Document


@dataclass(frozen=True, slots=True)
class InputRow:
    """A row of the input: a JSON object with `text` or `token_ids` and perhaps `id`, or what is wrong."""

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


COLUMNS = {
    "row": "int64",
    "id": "string",
    "verdict": "string",
    "p_value": "float64",
    "log10_p": "float64",
    "z": "float64",
    "tokens": "int64",
    "scored_blocks": "int64",
    "hypotheses": "int64",
    "tokens_needed": "int64",
    "tokens_typical": "int64",
    "key_id": "string",
    "key_version": "int64",
    "profile": "string",
    "pool_key": "int64",
    "payload": "int64",
    "pool_keys_found": "int64",
    "basis": "string",
    "foreign_marks": "strings",
    "metadata": "strings",
    "log10_e": "float64",
    "reader": "string",
    "reading": "string",
    "scope": "string",
    "marked_share": "float64",
    "marked_share_low": "float64",
    "marked_share_high": "float64",
    "weak": "bool",
    "segments": "segments",
    "voice": "string",
    "error": "string",
}
"""Columns of an output row and their types."""
_OF_ROW = {"row", "id", "error"}
_OF_RESULT = [name for name in COLUMNS if name in CombinedResult.model_fields and name not in _OF_ROW]
"""What a row takes of a result, as it is unless it is made of parts."""


def result_row(number: int, row_id: str | None, result: DetectionResult) -> dict[str, Any]:
    row = error_row(number, row_id, None) | {name: getattr(result, name, None) for name in _OF_RESULT}
    if result.key:
        row |= {**_key(result.key), "profile": result.key.profile}
    if result.foreign_marks is not None:
        row["foreign_marks"] = [mark.key.key_id for mark in result.foreign_marks]
    if result.metadata is not None:
        row["metadata"] = [manifest.status for manifest in result.metadata]
    if share := row["marked_share"]:
        row |= {
            "marked_share": share.estimate,
            "marked_share_low": share.low,
            "marked_share_high": share.high,
        }
    if result.segments is not None:
        row["segments"] = [
            {**segment.model_dump(exclude={"key"}), **_key(segment.key)} for segment in result.segments
        ]
    return row


def error_row(number: int, row_id: str | None, error: str | None) -> dict[str, Any]:
    return dict.fromkeys(COLUMNS) | {"row": number, "id": row_id, "error": error}


def _key(key: DetectedKey) -> dict[str, Any]:
    return {
        "key_id": key.key_id,
        "key_version": key.version,
        "pool_key": key.pool_key,
        "payload": key.payload,
    }
