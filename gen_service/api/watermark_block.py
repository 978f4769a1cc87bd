"""What a response says of its watermark: its `watermark` block, and headers for clients that drop it."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ttmark.gen_service.api.marking_policy import DEFAULT_RULE, MarkingChoice
from ttmark.gen_service.api.receipt import Receipts
from ttmark.gen_service.engine import MarkReport
from ttmark.shared.schemas.watermark_block import Detectability, WatermarkBlock, WatermarkStatus

# No completion can be marked in these places, so they make no completion partial.
_BY_DESIGN = frozenset({"opening", "warm_up", "odd_end"})


def watermark_block(
    choice: MarkingChoice, reports: Sequence[MarkReport], receipts: Receipts
) -> WatermarkBlock:
    """One block for all completions of a response."""
    blocks = sum(report.blocks for report in reports)
    marked = sum(report.watermarked_blocks for report in reports)
    reasons: Counter[str] = Counter()
    for report in reports:
        reasons.update(report.reasons)
    marking = choice.marking
    return WatermarkBlock(
        status=_status(marked, reasons),
        reasons=dict(reasons),
        key_id=marking.key_id if marking else None,
        key_version=marking.key_version if marking else None,
        profile=marking.profile_id if marking else None,
        policy=None if choice.rule == DEFAULT_RULE else choice.rule,
        blocks=blocks,
        watermarked_blocks=marked,
        detectability=receipts.hardest.detectability,
        log10_p=receipts.hardest.log10_p,
        choices=receipts.choices,
    )


def _status(marked: int, reasons: Counter[str]) -> WatermarkStatus:
    if not marked:
        return "unwatermarked"
    return "partial" if reasons.keys() - _BY_DESIGN else "watermarked"


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
