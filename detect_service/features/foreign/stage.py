"""Keys of other systems are tried beside our own."""

from functools import partial

from ttmark.detect_service.examination import Examination
from ttmark.detect_service.features.foreign.foreign_marks import foreign_cost, foreign_findings, with_foreign
from ttmark.detect_service.key_selection import OtherKeys
from ttmark.detect_service.stage import Stage
from ttmark.detect_service.verdict import Decision
from ttmark.shared.schemas.detection import DetectionResult


def with_foreign_of(
    examination: Examination, index: int, result: DetectionResult, decision: Decision
) -> DetectionResult:
    """The result of document number `index` with what foreign keys say beside our own's decision."""
    request, selection = examination.request, examination.selection
    findings = foreign_findings(
        request,
        selection.foreign,
        examination.documents[index],
        selection.versions,
        partial(examination.left_out, index),
    )
    ours = decision if selection.own else None
    return with_foreign(result, request, ours, findings, evidence=examination.shows_evidence)


STAGE = Stage("foreign", other_keys=OtherKeys(foreign_cost, with_foreign_of))
