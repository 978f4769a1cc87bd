"""Headers of an answer, for clients that drop its `watermark` block: its status, and how detectable it is."""

from typing import Any

from ttmark.gen_service.api.marking_choice import MarkingChoice
from ttmark.shared.schemas.watermark_block import Detectability, WatermarkBlock

STATUS = "X-TTMark-Status"
DETECTABILITY = "X-TTMark-Detectability"
WARNING = "Warning"
PENDING = "pending"
"""Of a stream that is to be marked: what came of it is in its last event."""

Headers = dict[str, str]


def whole_headers(block: WatermarkBlock) -> Headers:
    """Of an answer that has ended."""
    return _headers(block.status, block.detectability)


def stream_headers(choice: MarkingChoice) -> Headers:
    """Of an answer that begins: it is known whether it will be marked at all."""
    return _headers(PENDING if choice.marking else "unwatermarked", None)


def described_headers() -> dict[str, Any]:
    """The headers in the API's description."""
    return {
        STATUS: {
            "description": "`status` of the `watermark` block; of a stream `unwatermarked` or `pending`.",
            "schema": {"enum": ["watermarked", "partial", "unwatermarked", PENDING]},
        },
        DETECTABILITY: {
            "description": "`detectability` of the `watermark` block, where that has one; not of a stream.",
            "schema": {"enum": ["strong", "weak", "none"]},
        },
        WARNING: {
            "description": "The fields of the request that nobody knows, where the service ignores them.",
            "schema": {"type": "string"},
        },
    }


def _headers(status: str, detectability: Detectability | None) -> Headers:
    return {STATUS: status} | ({DETECTABILITY: detectability} if detectability else {})
