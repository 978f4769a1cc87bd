"""Looks for the marks of other systems in one document, under the same rate as our own."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ttmark.detect_service.asked_document import AskedDocument
from ttmark.detect_service.decision import Decision
from ttmark.detect_service.reader import DocumentReader
from ttmark.shared.keys.unlocked import ForeignKey, ForeignVersion
from ttmark.shared.schemas.detection import CombinedRequest, DetectionRequest, LocalizedRequest
from ttmark.shared.watermark.foreign import ForeignEvidence
from ttmark.shared.watermark.foreign.evidence import NOTHING_SCORED
from ttmark.shared.watermark.foreign.passages import Passage, passages, reported, window_count
from ttmark.shared.watermark.pauses import pause

How = Literal["direct", "localized"]


@dataclass(frozen=True, slots=True)
class ForeignFinding:
    """A document under one foreign key.

    Attributes:
        how: whether the p-value is of the text as a whole or of its best passage.
        log10_p: corrected for every hypothesis that was tried on the document.
        hypotheses: of this key.
        evidence: of the text, or of its best passage; its p-value counts nothing else.
        passages: those found, corrected likewise.
        reader: the reading that counts.
        decision: what this key alone would decide.
    """

    key: ForeignKey
    version: ForeignVersion
    how: How
    log10_p: float
    hypotheses: int
    evidence: ForeignEvidence
    passages: tuple[Passage, ...]
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


def foreign_findings(
    request: DetectionRequest,
    keys: Sequence[ForeignKey],
    readings: Sequence[DocumentReader],
    versions: int,
    asked: AskedDocument | None = None,
) -> list[ForeignFinding]:
    """What each version of each key says, the most surprising first.

    Args:
        readings: of the document.
        versions: tried on the document, those of our own keys included.
        asked: what of it is spent, which is not scored; None: nothing is.
    """
    limit = math.log10(request.fpr)
    correction = math.log10(max(1, versions * len(readings) * len(hows(request))))
    found = []
    for key in keys:
        for version in key.detectable:
            tries = [
                one
                for reader in readings
                for one in _tries(key, version, reader, hows(request), correction, limit, asked)
            ]
            best = min(tries, key=lambda one: one.log10_p)
            found.append(
                replace(
                    best,
                    hypotheses=sum(one.hypotheses for one in tries),
                    passages=_passages(tries, best.reader),
                    decision=shared_decision([one.decision for one in tries]),
                )
            )
    return sorted(found, key=lambda one: one.log10_p)


def _passages(tries: Sequence[ForeignFinding], reader: DocumentReader) -> tuple[Passage, ...]:
    return tuple(found for one in tries if one.reader is reader for found in one.passages)


def _tries(
    key: ForeignKey,
    version: ForeignVersion,
    reader: DocumentReader,
    ways: Sequence[How],
    correction: float,
    limit: float,
    asked: AskedDocument | None,
) -> Iterator[ForeignFinding]:
    """One reading as a whole, and by its passages."""
    tokens = reader.token_ids(key)
    pause()
    text = version.mark.read(tokens)
    left = tokens.size
    if asked is not None:
        spent = asked.rows.spent_tokens(asked.standing.states, reader, key, version.mark)
        left -= int(np.count_nonzero(spent))
        text = text.keeping(~spent[text.positions])
    scored = text.positions.size
    for how in ways:
        hypotheses = 1 if how == "direct" else max(1, window_count(tokens.size))
        evidence, log10_p = NOTHING_SCORED, 0.0
        found: tuple[Passage, ...] = ()
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
        yield ForeignFinding(
            key, version, how, min(0.0, log10_p), hypotheses, evidence, found, reader, decision
        )


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
