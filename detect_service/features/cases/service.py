"""Opens the feature: signed cases."""

from ttmark.detect_service.api.features import Application, DetectionFeature, Part
from ttmark.detect_service.features.cases.case_writer import stage_of
from ttmark.detect_service.features.cases.routes import case_page_router, public_key_router
from ttmark.detect_service.features.cases.settings import CaseSettings
from ttmark.services.composition.opening import Opening
from ttmark.shared.signed_files.signed_file import CaseKey


def opened(_: Opening) -> DetectionFeature:
    return cases(CaseSettings().load_case_key())


def cases(key: CaseKey | None) -> DetectionFeature:
    """Cases are signed with the key; None: none are."""

    def part(app: Application) -> Part:
        return Part([case_page_router(key, app.admission.run_long), public_key_router(key)])

    return DetectionFeature(part) if key is None else DetectionFeature(part, stage_of(key), provides=[key])
