"""Composition root of the public tier."""

import math

from ttmark.detect_service.public.tier import PUBLIC_PATH, PublicTier
from ttmark.services.key_access import KeyAccess
from ttmark.services.settings.detection import DetectionSettings
from ttmark.shared.http.auth import Guests
from ttmark.shared.limits.allowances import LimitMetrics
from ttmark.shared.limits.public_allowance import PublicAllowance, PublicBudget
from ttmark.shared.limits.row_space import AnswerRule


def open_public_tier(
    settings: DetectionSettings, access: KeyAccess, metrics: LimitMetrics
) -> tuple[PublicTier | None, Guests | None]:
    """The tier, if it is on, and whom it lets in without a token, if anybody.

    Raises:
        StartupError: the file with the public token cannot be read or holds none.
    """
    if not settings.public:
        return None, None
    token = settings.load_public_token()
    window = settings.answers_window_seconds
    budget = PublicBudget(
        address_words=settings.public_address_words_per_day,
        token_words=settings.public_words_per_day,
        tenant_words=settings.public_tenant_words_per_day,
        address_requests=settings.public_address_requests_per_minute,
        asker=settings.public_answers_per_asker,
        everybody=AnswerRule(settings.public_answers, window, settings.chance_findings or math.inf),
    )
    key = access.kek.derive(b"ttmark public questions")
    allowance = PublicAllowance(access.counters, budget, metrics, access.audit, key=key)
    tier = PublicTier(
        rate=settings.public_fpr,
        characters=settings.public_characters,
        contact=settings.public_contact,
        words_per_day=settings.public_words_per_day,
        guest_words_per_day=None if token is None else settings.public_address_words_per_day,
        questions=settings.public_answers_per_asker,
        allowance=allowance,
    )
    if token is None:
        return tier, None
    addresses = access.kek.derive(b"ttmark public addresses")
    return tier, Guests(PUBLIC_PATH, token, addresses, allowance.admit_guest)
