"""What to look for in documents, whoever sends them: the command line and bulk runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from ttmark.shared.schemas.detection.detect import DEFAULT_FPR, REQUESTS, DetectionRequest, Document, Phase

Mode = Literal["combined", "direct", "aligned", "localized"]
_OWN = {"phase", "beta", "method"}  # of one mode each


@dataclass(frozen=True, slots=True)
class DetectionOptions:
    """The options of a detection request; see `ttmark.shared.schemas.detection.detect`."""

    mode: Mode = "combined"
    keys: tuple[str, ...] | None = None
    fpr: float = DEFAULT_FPR
    normalize: bool = True
    phase: Phase | None = None
    beta: float = 5.0
    method: Literal["scan", "waterseeker"] = "scan"

    def request(
        self, documents: list[Document], origin: Mapping[str, Any] = MappingProxyType({})
    ) -> DetectionRequest:
        """The request that examines `documents`.

        Args:
            origin: how they were made, see `Origin`; for the mode `combined` alone.

        Raises:
            pydantic.ValidationError: an option is out of range.
        """
        kind = REQUESTS[self.mode]
        return kind(
            inputs=documents,
            keys=None if self.keys is None else list(self.keys),
            fpr=self.fpr,
            normalize=self.normalize,
            **{name: getattr(self, name) for name in _OWN & kind.model_fields.keys()},
            **origin,
        )
