"""The `watermark` block of a response, from what the engine reports of each completion."""

from collections import Counter
from collections.abc import Sequence

from ttmark.gen_service.api.marking_choice import DEFAULT_RULE, MarkingChoice
from ttmark.gen_service.api.receipt import Receipts
from ttmark.gen_service.engine import MarkReport
from ttmark.shared.schemas.watermark_block import WatermarkBlock, WatermarkStatus

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
