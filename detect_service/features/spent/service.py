"""Opens the feature: evidence is spent, for callers who see verdicts alone."""

import math

from ttmark.detect_service.api.features import DetectionFeature
from ttmark.detect_service.features.spent.settings import SpentSettings
from ttmark.detect_service.features.spent.spending import Spending
from ttmark.detect_service.features.spent.spent_evidence import AnswerLedger
from ttmark.detect_service.features.spent.spent_question import stage_of
from ttmark.services.composition.opening import Opening
from ttmark.shared.limits.counting_filter import AnswerRule


def opened(opening: Opening) -> DetectionFeature | None:
    settings, access = SpentSettings(), opening.access
    if not settings.answers_per_passage:
        return None
    rule = AnswerRule(settings.answers_per_passage, findings=settings.chance_findings or math.inf)
    ledger = AnswerLedger(access.counters, key=access.kek.derive(b"ttmark answers"), rule=rule)
    return DetectionFeature(stage=stage_of(Spending(ledger, opening.allowance.refused)))
