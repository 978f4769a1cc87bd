"""Opens the feature: signed cases."""

from ttmark.detect_service.api.features import Application, Feature, Part
from ttmark.detect_service.features.cases.routes import case_page_router, public_key_router
from ttmark.services.opening import Opening


def _part(app: Application) -> Part:
    key = app.means.case_key
    return Part([case_page_router(key, app.admission.run_long), public_key_router(key)])


FEATURE = Feature(_part)


def opened(_: Opening) -> Feature:
    return FEATURE
