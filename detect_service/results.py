"""From evidence to the answer that a caller may see."""

from detect_service.pipeline import Decision, Finding
from detect_service.reader import DocumentReader
from shared.schemas.detection import BlockEvidence, DetectedKey, DetectionResult, NormalizationReport


def verdict_only(
    document_id: str,
    tokens: int,
    finding: Finding | None,
    decision: Decision,
    normalization: NormalizationReport | None,
) -> DetectionResult:
    """What the scope `detect` shows: the verdict, without any score."""
    return DetectionResult(
        id=document_id,
        verdict=decision.verdict,
        tokens=tokens,
        hypotheses=finding.hypotheses if finding else 0,
        tokens_needed=decision.tokens_needed,
        normalization=normalization,
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
            "evidence": block_evidence(finding, reader) if blocks else None,
        }
    )


def block_evidence(finding: Finding, reader: DocumentReader) -> list[BlockEvidence]:
    """The scored blocks in order, with characters where the document came as text."""
    size = finding.key.profile.block_size
    evidence = []
    for start, score in zip(finding.evidence.starts.tolist(), finding.evidence.scores.tolist(), strict=True):
        span = reader.characters(finding.key, start, start + size)
        evidence.append(
            BlockEvidence(
                start_token=start,
                end_token=start + size,
                start_char=span[0] if span else None,
                end_char=span[1] if span else None,
                score=score,
            )
        )
    return evidence
