"""What an answer says of its watermark: the `watermark` block, and headers for clients that drop it.

A receipt in it says how detectable a completion is; whoever generated it holds its key, and so can tell.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ttmark.gen_service.api.plan.stages import DEFAULT_RULE, MarkingChoice
from ttmark.gen_service.decoding.request import GenerationRequest, MarkReport
from ttmark.shared.access.scopes import Principal
from ttmark.shared.schemas.detection.detect import DEFAULT_FPR
from ttmark.shared.schemas.generation.watermark_block import (
    Detectability,
    Receipt,
    WatermarkBlock,
    WatermarkStatus,
)
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.unknown_tokens import read_ids
from ttmark.shared.watermark.detectors.block_scores import detect_direct

# A detector that knows less tries more: other keys, older versions, block boundaries, readings of the text.
# Three decades pay for a thousand such hypotheses.
STRONG_DECADES = 3.0

Audience = Literal["everyone", "evidence"]
Log10P = float | None
"""Of a completion; None where it was not to be marked."""


def scored(request: GenerationRequest, text: str, tokenizer: TextTokenizer) -> Log10P:
    """log10 p of a completion's text under the PRF key that marked it, at most 0 (paper Eq. 6, exact tail).

    It is what direct detection says of it at any boundary of blocks under this key alone, once it is read as
    whoever gets it will have it read.
    """
    marking = request.marking
    if marking is None:
        return None
    ids = read_ids(tokenizer, text)
    return detect_direct(marking.watermark, marking.prf_key, ids, phase="any").log10_p


Receipts = tuple[Receipt, list[Receipt] | None]
"""Of the completion that is the hardest to detect, and of each choice; None where there is one."""


@dataclass(frozen=True, slots=True)
class ReceiptRule:
    """What the words mean, and who hears them.

    Attributes:
        fpr: false positive rate at which the deployment detects.
        audience: who is told the word: every caller, or those who see evidence.
    """

    fpr: float = DEFAULT_FPR
    audience: Audience = "everyone"

    def word(self, log10_p: Log10P) -> Detectability:
        """`weak` from the rate on, `strong` from a thousandth of it on."""
        limit = math.log10(self.fpr)
        if log10_p is None or log10_p > limit:
            return "none"
        return "weak" if log10_p > limit - STRONG_DECADES else "strong"

    def receipts(self, values: Sequence[Log10P], caller: Principal, *, dictated: bool) -> Receipts:
        """What the caller may hear of the completions with these log10 p.

        Args:
            dictated: the request's schema may have dictated the text, so that a word on it would be a verdict
                on a text of the caller's choice: for those who see evidence only.
        """
        if not caller.sees_evidence and (dictated or self.audience == "evidence"):
            return Receipt(), None
        hardest = max(values, key=lambda value: 0.0 if value is None else value)
        choices = [self._receipt(value, caller) for value in values] if len(values) > 1 else None
        return self._receipt(hardest, caller), choices

    def _receipt(self, value: Log10P, caller: Principal) -> Receipt:
        number = value if caller.sees_evidence else None
        return Receipt(detectability=self.word(value), log10_p=number)


# No completion can be marked in these places, so they make no completion partial.
_BY_DESIGN = frozenset({"opening", "warm_up", "odd_end"})


def watermark_block(
    choice: MarkingChoice, reports: Sequence[MarkReport], receipts: Receipts
) -> WatermarkBlock:
    hardest, each = receipts
    blocks = sum(report.blocks for report in reports)
    marked = sum(report.watermarked_blocks for report in reports)
    status: WatermarkStatus = "watermarked" if marked else "unwatermarked"
    reasons: Counter[str] = Counter()
    for report in reports:
        reasons.update(report.reasons)
    if marked and reasons.keys() - _BY_DESIGN:
        status = "partial"
    marking = choice.marking
    return WatermarkBlock(
        status=status,
        reasons=dict(reasons),
        key_id=marking.key_id if marking else None,
        key_version=marking.key_version if marking else None,
        profile=marking.profile_id if marking else None,
        policy=None if choice.rule == DEFAULT_RULE else choice.rule,
        blocks=blocks,
        watermarked_blocks=marked,
        detectability=hardest.detectability,
        log10_p=hardest.log10_p,
        choices=each,
    )


MARKED = "X-Watermark"
STATUS = "X-TTMark-Status"
DETECTABILITY = "X-TTMark-Detectability"
WARNING = "Warning"
PENDING = "pending"
"""Of a stream that is to be marked: what came of it is in its last event."""


def answer_headers(status: str, detectability: Detectability | None = None) -> dict[str, str]:
    """Of an answer that has ended, or begins: then it is known whether it will be marked at all."""
    marked = "false" if status == "unwatermarked" else "true"
    return {MARKED: marked, STATUS: status} | ({DETECTABILITY: detectability} if detectability else {})


def described_headers() -> dict[str, Any]:
    return {
        MARKED: {
            "description": "Whether the answer carries the watermark; of a stream, whether it will.",
            "schema": {"enum": ["true", "false"]},
        },
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
