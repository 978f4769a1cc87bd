"""Opens the feature: the paper's three detectors."""

from ttmark.detect_service.api.features import Feature, Part
from ttmark.detect_service.features.paper.routes import paper_router
from ttmark.services.opening import Opening

FEATURE = Feature(lambda app: Part([paper_router(app.answer, app.admission)]))


def opened(_: Opening) -> Feature:
    return FEATURE
