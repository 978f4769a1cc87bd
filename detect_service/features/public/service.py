"""Opens the feature: everybody may ask, at one rate."""

import math

from ttmark.detect_service.api.features import Application, DetectionFeature, Part
from ttmark.detect_service.features.cases.routes import PUBLIC_KEY_PATH
from ttmark.detect_service.features.manifests.manifest_examiner import ManifestExaminer
from ttmark.detect_service.features.public.public_allowance import PublicAllowance, PublicBudget
from ttmark.detect_service.features.public.routes import public_limits, public_routers
from ttmark.detect_service.features.public.settings import PublicSettings
from ttmark.detect_service.features.public.tier import PUBLIC_PATH, PublicTier
from ttmark.detect_service.features.spent.settings import SpentSettings
from ttmark.services.composition.opening import Opening
from ttmark.shared.http.auth import Guests
from ttmark.shared.signed_files.signed_file import CaseKey


def opened(opening: Opening) -> DetectionFeature | None:
    """The tier, if it is on. Raises StartupError: the file of the public token holds none."""
    settings, access = PublicSettings(), opening.access
    if not settings.public:
        return None
    token, findings = settings.load_public_token(), SpentSettings().chance_findings
    budget = PublicBudget.of(settings.public_words_per_day, findings or math.inf)
    key = access.kek.derive(b"ttmark public questions")
    refused = opening.allowance.refused
    allowance = PublicAllowance(access.counters, budget, opening.limits, refused, key=key)
    tier = PublicTier(settings.public_fpr, settings.public_contact, budget, token is not None, allowance)
    guests = None
    if token is not None:
        addresses = access.kek.derive(b"ttmark public addresses")
        guests = Guests(PUBLIC_PATH, token, addresses, allowance.admit_guest)
    return public_tier(tier, guests)


def public_tier(tier: PublicTier, guests: Guests | None = None) -> DetectionFeature:
    def part(app: Application) -> Part:
        examiner = app.provided.get(ManifestExaminer)
        document = tier.described(
            None if app.provided.get(CaseKey) is None else PUBLIC_KEY_PATH,
            verifies_manifests=examiner is not None and examiner.workers is not None,
        )
        return Part(
            public_routers(tier, document, app), limits={PUBLIC_PATH: public_limits(tier, app.options.limits)}
        )

    return DetectionFeature(part, guests=guests)
