"""From evidence to the answer that a caller may see."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
from pydantic import TypeAdapter

from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.passages import block_scores, marked_passages
from ttmark.detect_service.verdict import DocumentFinding, FoundSegment
from ttmark.shared.keys.held_keys import HeldKey, UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.detection.detect import (
    BlockEvidence,
    DetectedKey,
    DetectionResponse,
    DetectionResult,
    ReaderState,
    Segment,
)
from ttmark.shared.watermark.detectors.segments import TokenSpan
from ttmark.shared.watermark.interruption import pause
from ttmark.shared.watermark.likelihood.evidence import LikelihoodEvidence
from ttmark.shared.watermark.likelihood.reading import Reading

# Answered blocks between two pauses.
_BLOCKS = 512
_EVIDENCE = TypeAdapter(list[BlockEvidence])
# A p-value this far above the rate is more than chance usually gives, as long as it is that: log10.
_WEAK_DECADES = 2.0
_WEAKEST = -2.0


def with_evidence(
    result: DetectionResult,
    finding: DocumentFinding,
    reader: DocumentReader,
    fpr: float,
    *,
    block_beta: float | None,
    reading: Callable[[UnlockedKey], Reading | None],
    reader_state: ReaderState,
) -> DetectionResult:
    """What the scope `detect:evidence` adds: p-value, scores, the key, segments, on request every block.

    Args:
        reader: the way of reading that the finding is of; its tokens are counted.
        block_beta: what an alignment pays for a skipped token; None where blocks are not asked for.
        reading: what a language model says of the tokens under a key.
    """
    found = result.verdict == "watermarked"
    combined: dict[str, Any] = {}
    if isinstance(finding.evidence, LikelihoodEvidence):
        combined = {"log10_e": finding.log10_e, "reader": reader_state}
        passages: tuple[FoundSegment, ...] = ()
        if found:
            passages, share = marked_passages(finding, reader.token_ids, reading)
            makers = {(one.key.key_id, one.version.version, one.pool_key) for one in passages}
            # They stand out where the rest of the text does not carry the mark, or several keys made them.
            if not passages or (share.high >= 1.0 and len(makers) < 2):
                passages = ()
            combined |= {"scope": "passages" if passages else "whole", "marked_share": share}
        else:
            combined["weak"] = is_weak(finding.log10_p, fpr)
        finding = replace(finding, segments=passages)
    segments = [
        shown_segment(one, one.log10_e, reader, one.key, shown_key(one.key, one.version, one.pool_key))
        for one in finding.segments or ()
    ]
    version = finding.key.key_id, finding.version.version
    fired = sum((one.key.key_id, one.version.version) == version for one in finding.fired)
    key = shown_key(finding.key, finding.version, finding.pool_key, alone=fired < 2)
    return result.model_copy(
        update={
            "tokens": len(reader.token_ids(finding.key)),
            "reading": reader.names[0],
            "p_value": 10**finding.log10_p,
            "log10_p": finding.log10_p,
            "z": finding.z,
            "scored_blocks": finding.scored_blocks,
            "key": key if found else None,
            "pool_keys_found": fired if found and finding.key.profile.pool > 1 else None,
            "segments": None if finding.segments is None else segments,
            "evidence": None if block_beta is None else _block_evidence(finding, reader, block_beta),
            **combined,
        }
    )


def is_weak(log10_p: float, fpr: float) -> bool:
    """Whether a p-value that reaches no finding is more than chance usually gives."""
    return log10_p <= min(math.log10(fpr) + _WEAK_DECADES, _WEAKEST)


def response_json(response: DetectionResponse) -> bytes:
    """`response.model_dump_json()`, a document at a time."""
    results = []
    for result in response.results:
        pause()
        results.append(orjson.Fragment(result_json(result)))
    return orjson.dumps({"results": results, **response.model_dump(exclude={"results"})})


def result_json(result: DetectionResult) -> bytes:
    """`result.model_dump_json()`, some of its blocks at a time."""
    if result.evidence is None:
        return result.model_dump_json().encode()
    blocks: list[Any] = []
    for first in range(0, len(result.evidence), _BLOCKS):
        pause()
        blocks += _EVIDENCE.dump_python(result.evidence[first : first + _BLOCKS])
    fields = result.model_copy(update={"evidence": []}).model_dump(mode="json")
    return orjson.dumps(fields | {"evidence": blocks})


def shown_key(
    key: UnlockedKey, version: UnlockedVersion, pool_key: int | None, *, alone: bool = True
) -> DetectedKey:
    """The key of a document or a passage.

    Args:
        pool_key: its number in the pool; None: it is not said.
        alone: whether no other key of the pool was found in it: a text of several messages has none.
    """
    profile = key.profile
    return DetectedKey(
        key_id=key.key_id,
        version=version.version,
        profile=profile.profile_id,
        pool_key=pool_key if profile.pool > 1 else None,
        payload=pool_key if profile.payloads and alone else None,
    )


def shown_segment(
    passage: TokenSpan, log10_e: float, reader: DocumentReader, key: HeldKey, shown: DetectedKey
) -> Segment:
    """A passage, in the text as it was sent, with the key as callers are told it."""
    first, last = reader.characters(key, passage.start, passage.end) or (None, None)
    return Segment(
        start_token=passage.start,
        end_token=passage.end,
        start_char=first,
        end_char=last,
        log10_e_value=log10_e,
        key=shown,
    )


def _block_evidence(finding: DocumentFinding, reader: DocumentReader, beta: float) -> list[BlockEvidence]:
    """The scored blocks in order, with characters where the document came as text."""
    evidence = []
    for run in block_scores(finding, reader.token_ids, beta):
        for index, (start, score) in enumerate(zip(run.starts.tolist(), run.scores.tolist(), strict=True)):
            if index % _BLOCKS == 0:
                pause()
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
