"""What features of the detection service are opened with."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from ttmark.detect_service.api.features import DetectionFeature, Provided
from ttmark.services.composition.key_access import KeyAccess
from ttmark.services.settings.detection import DetectionSettings
from ttmark.shared.features import modules_of
from ttmark.shared.limits.rate_limits import DocumentAllowance, LimitMetrics


@dataclass(frozen=True, slots=True)
class Opening:
    """The service's own means; settings of a feature are its own.

    Attributes:
        provided: what the features have for each other that were opened before.
    """

    settings: DetectionSettings
    access: KeyAccess
    registry: CollectorRegistry
    limits: LimitMetrics
    allowance: DocumentAllowance
    provided: Provided = field(default_factory=Provided)

    def features(self) -> Iterator[DetectionFeature]:
        """All that are there and switched on, each after those that it needs.

        Raises:
            StartupError: settings of one are not usable.
        """
        for module in modules_of("service", "ttmark.detect_service.features"):
            feature: DetectionFeature | None = module.opened(self)
            if feature is not None:
                self.provided.extend(feature.provides)
                yield feature
