"""From evidence to the answer that a caller may see."""

from detect_service.block_scores import block_scores
from detect_service.decision import Decision
from detect_service.pipeline import Finding, FoundSegment
from detect_service.reader import DocumentReader
from shared.keys import UnlockedKey, UnlockedVersion
from shared.schemas.detection import (
    BlockEvidence,
    DetectedKey,
    DetectionResult,
    NormalizationReport,
    Segment,
)


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
    """What the scope `detect:evidence` adds: p-value, scores, the key, segments, on request every block."""
    found = result.verdict == "watermarked"
    segments = finding.segments
    return result.model_copy(
        update={
            "p_value": 10**finding.log10_p,
            "log10_p": finding.log10_p,
            "z": finding.z,
            "scored_blocks": finding.evidence.scored_blocks,
            "key": _shown_key(finding.key, finding.version) if found else None,
            "segments": None if segments is None else [_shown_segment(s, reader) for s in segments],
            "evidence": _block_evidence(finding, reader) if blocks else None,
        }
    )


def _shown_key(key: UnlockedKey, version: UnlockedVersion) -> DetectedKey:
    return DetectedKey(key_id=key.key_id, version=version.version, profile=key.profile.profile_id)


def _shown_segment(segment: FoundSegment, reader: DocumentReader) -> Segment:
    first, last = reader.characters(segment.key, segment.start, segment.end) or (None, None)
    return Segment(
        start_token=segment.start,
        end_token=segment.end,
        start_char=first,
        end_char=last,
        log10_e_value=segment.log10_e,
        key=_shown_key(segment.key, segment.version),
    )


def _block_evidence(finding: Finding, reader: DocumentReader) -> list[BlockEvidence]:
    """The scored blocks in order, with characters where the document came as text."""
    evidence = []
    for run in block_scores(finding, reader.token_ids):
        for start, score in zip(run.starts.tolist(), run.scores.tolist(), strict=True):
            first, last = reader.characters(finding.key, start, start + run.size) or (None, None)
            evidence.append(
                BlockEvidence(
                    start_token=start,
                    end_token=start + run.size,
                    start_char=first,
                    end_char=last,
                    score=score,
                )
            )
    return sorted(evidence, key=lambda block: block.start_token)
