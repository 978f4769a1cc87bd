"""What answers in any process: the core, and the features that need nothing of a service."""

from functools import cache

from ttmark.detect_service.ask import Means
from ttmark.detect_service.documents.backend import DetectionBackend
from ttmark.detect_service.stage import VerdictStage
from ttmark.shared.features import modules_of


@cache
def _stages() -> tuple[VerdictStage, ...]:
    return tuple(module.STAGE for module in modules_of("stage", "ttmark.detect_service.features"))


def means_of(backend: DetectionBackend) -> Means:
    """With the stage of every feature that has one by itself: as `STAGE`, in its module `stage`."""
    return Means(backend).with_stages(_stages())
