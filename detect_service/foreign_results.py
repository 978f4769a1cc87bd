"""What foreign keys add to the answer about a document."""

from collections.abc import Sequence
from typing import Any

from ttmark.detect_service.decision import Decision
from ttmark.detect_service.foreign_detector import ForeignFinding, shared_decision
from ttmark.detect_service.results import is_weak
from ttmark.shared.schemas.detected import Basis, DetectedKey, ForeignMarkFound, Segment
from ttmark.shared.schemas.detection import (
    CombinedRequest,
    DetectionRequest,
    DetectionResult,
    LocalizedRequest,
)


def with_foreign(
    result: DetectionResult,
    request: DetectionRequest,
    ours: Decision | None,
    findings: Sequence[ForeignFinding],
    *,
    evidence: bool,
) -> DetectionResult:
    """The result with what foreign keys say; as it was where none was tried.

    Args:
        result: by our own keys, or about none.
        ours: what they decided; None: none was tried.
        findings: of the foreign keys, the most surprising first.
        evidence: whether the caller may see more than the verdict.
    """
    if not findings:
        return result
    best = findings[0]
    found = [one for one in findings if one.decision.verdict == "watermarked"]
    decision = shared_decision([*([] if ours is None else [ours]), *(one.decision for one in findings)])
    alone = bool(found) and (ours is None or ours.verdict != "watermarked")
    changed: dict[str, Any] = {
        "verdict": decision.verdict,
        "tokens_needed": decision.tokens_needed,
        "tokens_typical": decision.tokens_typical,
        "hypotheses": result.hypotheses + sum(one.hypotheses for one in findings),
    }
    if alone:
        changed["basis"] = Basis.FOREIGN_WATERMARK
    if evidence:
        if found:
            changed["foreign_marks"] = [_shown(one) for one in found]
        ours_is_best = result.log10_p is not None and result.log10_p <= best.log10_p
        if alone or (not ours_is_best and decision.verdict != "watermarked"):
            changed |= _figures(best, request, found=alone)
    return result.model_copy(update=changed)


def _figures(best: ForeignFinding, request: DetectionRequest, *, found: bool) -> dict[str, Any]:
    """The document's own figures where a foreign key explains it best."""
    where: dict[str, Any] = {}
    if isinstance(request, CombinedRequest):
        stand_out = found and _stand_out(best)
        where = {
            "scope": ("passages" if stand_out else "whole") if found else None,
            "weak": None if found else is_weak(best.log10_p, request.fpr),
            "segments": _segments(best) if stand_out else [],
        }
    elif isinstance(request, LocalizedRequest):
        where = {"segments": _segments(best)}
    return {
        "tokens": len(best.reader.token_ids(best.key)),
        "reading": "normalized" if best.reader.undo_tricks else "as_sent",
        "p_value": 10**best.log10_p,
        "log10_p": best.log10_p,
        "z": None,
        "scored_blocks": best.evidence.scored_tokens,
        "key": _shown_key(best) if found else None,
        **where,
    }


def _stand_out(finding: ForeignFinding) -> bool:
    """Whether the passages leave some of the text out."""
    held = sum(one.end - one.start for one in finding.passages)
    return 0 < held < len(finding.reader.token_ids(finding.key))


def _segments(finding: ForeignFinding) -> list[Segment]:
    segments = []
    for one in finding.passages:
        first, last = finding.reader.characters(finding.key, one.start, one.end) or (None, None)
        segments.append(
            Segment(
                start_token=one.start,
                end_token=one.end,
                start_char=first,
                end_char=last,
                log10_e_value=one.log10_e,
                key=_shown_key(finding),
            )
        )
    return segments


def _shown(finding: ForeignFinding) -> ForeignMarkFound:
    return ForeignMarkFound(
        key=_shown_key(finding),
        log10_p=finding.log10_p,
        score=finding.evidence.score,
        scored_tokens=finding.evidence.scored_tokens,
        segments=_segments(finding),
    )


def _shown_key(finding: ForeignFinding) -> DetectedKey:
    profile = finding.key.profile
    return DetectedKey(
        key_id=finding.key.key_id,
        version=finding.version.version,
        profile=profile.profile_id,
        scheme=profile.scheme,
    )
