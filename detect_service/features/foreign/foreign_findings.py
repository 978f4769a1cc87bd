"""The marks of other systems in one document, under the same rate as our own: looked for, and shown."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.examination import Examination
from ttmark.detect_service.results import is_weak, shown_segment
from ttmark.detect_service.verdict import Decision
from ttmark.shared.keys.held_keys import ForeignKey, ForeignVersion
from ttmark.shared.schemas.detection.detect import (
    Basis,
    CombinedRequest,
    DetectedKey,
    DetectionRequest,
    DetectionResult,
    ForeignMarkFound,
    LocalizedRequest,
    Segment,
)
from ttmark.shared.watermark.foreign import ForeignEvidence, ForeignMark, Kgw, SynthIdText, VllmGumbel
from ttmark.shared.watermark.foreign.foreign_mark import (
    NOTHING_SCORED,
    ForeignPassage,
    passages,
    reported,
    window_count,
)
from ttmark.shared.watermark.interruption import pause

How = Literal["direct", "localized"]


@dataclass(frozen=True, slots=True)
class ForeignFinding:
    """A document under one foreign key.

    Attributes:
        log10_p: of the text as a whole or its best passage, corrected for all that was tried on the document.
        hypotheses: of this key.
        evidence: of the text, or of its best passage; its p-value counts nothing else.
        passages: those found, corrected likewise.
        reader: the reading that counts.
        decision: what this key alone would decide.
    """

    key: ForeignKey
    version: ForeignVersion
    log10_p: float
    hypotheses: int
    evidence: ForeignEvidence
    passages: tuple[ForeignPassage, ...]
    reader: DocumentReader
    decision: Decision


def hows(request: DetectionRequest) -> tuple[How, ...]:
    """How a text is searched: an edit costs a mark of single tokens few of them, so there is no alignment."""
    match request:
        case CombinedRequest():
            return "direct", "localized"
        case LocalizedRequest():
            return ("localized",)
        case _:
            return ("direct",)


def foreign_findings(examination: Examination, index: int) -> list[ForeignFinding]:
    """What each version of each key says of document number `index`, the most surprising first."""
    found = []
    for key in examination.selection.foreign:
        for version in key.detectable:
            tries = [
                one
                for reader in examination.documents[index]
                for one in _tries(examination, index, key, version, reader)
            ]
            best = min(tries, key=lambda one: one.log10_p)
            found.append(
                replace(
                    best,
                    hypotheses=sum(one.hypotheses * len(one.reader.names) for one in tries),
                    passages=tuple(
                        passage for one in tries if one.reader is best.reader for passage in one.passages
                    ),
                    decision=shared_decision([one.decision for one in tries]),
                )
            )
    return sorted(found, key=lambda one: one.log10_p)


def _tries(
    examination: Examination, index: int, key: ForeignKey, version: ForeignVersion, reader: DocumentReader
) -> Iterator[ForeignFinding]:
    """One reading as a whole, and by its passages, p-values multiplied by what is tried on the document."""
    ways, limit = hows(examination.request), math.log10(examination.request.fpr)
    correction = math.log10(max(1, examination.selection.versions * len(ways)) / reader.weight)
    tokens = reader.token_ids(key)
    pause()
    text = version.mark.read(tokens)
    left = tokens.size
    unscored = examination.left_out(index, reader, key, version.mark.row_tokens)
    if unscored is not None:
        left -= int(np.count_nonzero(unscored))
        text = text.keeping(~unscored[text.positions])
    scored = text.positions.size
    for how in ways:
        hypotheses = 1 if how == "direct" else max(1, window_count(tokens.size))
        evidence, log10_p = NOTHING_SCORED, 0.0
        found: tuple[ForeignPassage, ...] = ()
        if scored and how == "direct":
            evidence = text.evidence(0, scored)
            log10_p = evidence.log10_p + correction
        elif scored:
            windows = [replace(one, log10_e=one.log10_e + correction) for one in passages(text, tokens.size)]
            evidence, log10_p = windows[0].evidence, windows[0].log10_e
            found = tuple(reported(windows, limit))
        decision = Decision("watermarked", None)
        if log10_p > limit:
            needed = version.mark.tokens_needed(limit - correction - math.log10(hypotheses))
            short = left < needed
            decision = Decision("too_short", needed) if short else Decision("not_detected", None)
        yield ForeignFinding(key, version, min(0.0, log10_p), hypotheses, evidence, found, reader, decision)


def shared_decision(decisions: Sequence[Decision]) -> Decision:
    """Of several hypotheses: found by one, too short for all, or neither."""
    verdicts = {one.verdict for one in decisions}
    if "watermarked" in verdicts:
        return Decision("watermarked", None)
    if "not_detected" in verdicts:
        return Decision("not_detected", None)
    return Decision(
        "too_short",
        min((one.tokens_needed for one in decisions if one.tokens_needed is not None), default=None),
        min((one.tokens_typical for one in decisions if one.tokens_typical is not None), default=None),
    )


def with_foreign(
    examination: Examination, index: int, result: DetectionResult, decision: Decision
) -> DetectionResult:
    """The result with what foreign keys say; as it was where none has a version to try.

    Args:
        result: by our own keys, or about none.
        decision: of our own keys; of no meaning where none was tried.
    """
    findings, request = foreign_findings(examination, index), examination.request
    ours = decision if examination.selection.own else None
    if not findings:
        return result
    best = findings[0]
    found = [one for one in findings if one.decision.verdict == "watermarked"]
    together = shared_decision([*([] if ours is None else [ours]), *(one.decision for one in findings)])
    of_scheme = {"": ours.verdict} if ours is not None and result.hypotheses else {}
    for scheme in {one.key.profile.scheme for one in findings}:
        its = [one.decision for one in findings if one.key.profile.scheme == scheme]
        of_scheme[scheme] = shared_decision(its).verdict
    alone = bool(found) and (ours is None or ours.verdict != "watermarked")
    changed: dict[str, Any] = {
        "verdict": together.verdict,
        "verdict_of_scheme": of_scheme,
        "tokens_needed": together.tokens_needed,
        "tokens_typical": together.tokens_typical,
        "hypotheses": result.hypotheses + sum(one.hypotheses for one in findings),
    }
    if alone:
        changed["basis"] = Basis.FOREIGN_WATERMARK
    if examination.shows_evidence:
        if found:
            changed["foreign_marks"] = [_shown(one) for one in found]
        ours_is_best = result.log10_p is not None and result.log10_p <= best.log10_p
        if alone or (not ours_is_best and together.verdict != "watermarked"):
            changed |= _figures(best, request, found=alone)
    return result.model_copy(update=changed)


def _figures(best: ForeignFinding, request: DetectionRequest, *, found: bool) -> dict[str, Any]:
    """The document's own figures where a foreign key explains it best."""
    where: dict[str, Any] = {}
    if isinstance(request, CombinedRequest):
        # The passages stand out where they leave some of the text out.
        held = sum(one.end - one.start for one in best.passages)
        stand_out = found and 0 < held < len(best.reader.token_ids(best.key))
        where = {
            "scope": ("passages" if stand_out else "whole") if found else None,
            "weak": None if found else is_weak(best.log10_p, request.fpr),
            "segments": _segments(best) if stand_out else [],
        }
    elif isinstance(request, LocalizedRequest):
        where = {"segments": _segments(best)}
    return {
        "tokens": len(best.reader.token_ids(best.key)),
        "reading": best.reader.names[0],
        "p_value": 10**best.log10_p,
        "log10_p": best.log10_p,
        "z": None,
        "scored_blocks": best.evidence.scored_tokens,
        "key": _shown_key(best) if found else None,
        **where,
    }


def _segments(finding: ForeignFinding) -> list[Segment]:
    key = _shown_key(finding)
    return [shown_segment(one, one.log10_e, finding.reader, finding.key, key) for one in finding.passages]


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


def foreign_cost(request: DetectionRequest, key: ForeignKey, lengths: Sequence[int]) -> float:
    """The work of looking for the key's mark in documents of so many tokens."""
    ways = hows(request)
    total = 0.0
    for version in key.detectable:
        token, whole, whole_token, window = _cost_of(version.mark)
        for tokens in lengths:
            total += token * tokens
            if "direct" in ways:
                total += whole + whole_token * tokens
            if "localized" in ways:
                total += window * window_count(tokens)
    return total


def _cost_of(mark: ForeignMark) -> tuple[float, float, float, float]:
    """Of a token that is scored; of a p-value of the whole text, in all and for each token; of a window."""
    match mark:
        case Kgw():  # a list of green tokens for each seed
            return 10.0 + 0.034 * mark.green, 200.0, 110.0, 3_700.0
        case SynthIdText():  # two transforms of a table, a convolution for each layer
            return 11.0, 4_000.0 + 300.0 * len(mark.keys), 5.0, 3_000.0 + 200.0 * len(mark.keys)
        case VllmGumbel() if mark.alpha is not None:
            return 11.0, 2_000.0, 25.0, 2_800.0
        case _:
            return 7.0, 100.0, 0.3, 100.0
