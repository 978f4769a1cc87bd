"""From evidence to the answer that a caller may see."""

from collections.abc import Sequence

from detect_service.pipeline import Decision, Finding
from detect_service.reader import DocumentReader, Span
from shared.schemas.detection import BlockEvidence, DetectedKey, DetectionResult
from shared.watermark import DirectEvidence


def verdict_only(
    document_id: str, tokens: int, finding: Finding | None, decision: Decision
) -> DetectionResult:
    """What the scope `detect` shows: the verdict, without any score."""
    return DetectionResult(
        id=document_id,
        verdict=decision.verdict,
        tokens=tokens,
        hypotheses=finding.hypotheses if finding else 0,
        tokens_needed=decision.tokens_needed,
    )


def with_evidence(
    result: DetectionResult, finding: Finding, reader: DocumentReader, *, blocks: bool
) -> DetectionResult:
    """What the scope `detect:evidence` adds: p-value, scores, the key, and on request every block."""
    detected = DetectedKey(
        key_id=finding.key.key_id, version=finding.version, profile=finding.key.profile.profile_id
    )
    return result.model_copy(
        update={
            "p_value": 10**finding.log10_p,
            "log10_p": finding.log10_p,
            "z": finding.evidence.z,
            "scored_blocks": finding.evidence.scored_blocks,
            "key": detected if result.verdict == "watermarked" else None,
            "evidence": block_evidence(
                finding.evidence, finding.key.profile.block_size, reader.spans(finding.key)
            )
            if blocks
            else None,
        }
    )


def block_evidence(
    evidence: DirectEvidence, block_size: int, spans: Sequence[Span] | None
) -> list[BlockEvidence]:
    """The scored blocks in order, with characters where the document came as text."""
    return [
        BlockEvidence(
            start_token=start,
            end_token=start + block_size,
            start_char=spans[start][0] if spans else None,
            end_char=spans[start + block_size - 1][1] if spans else None,
            score=score,
        )
        for start, score in zip(evidence.starts.tolist(), evidence.scores.tolist(), strict=True)
    ]
