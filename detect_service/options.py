"""What to look for in documents, whoever sends them: the command line and bulk runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from ttmark.shared.schemas.detection import (
    DEFAULT_FPR,
    AlignedRequest,
    CombinedRequest,
    DetectionRequest,
    DirectRequest,
    Document,
    LocalizedRequest,
    Phase,
)

Mode = Literal["combined", "direct", "aligned", "localized"]

_REQUESTS: dict[Mode, tuple[type[DetectionRequest], tuple[str, ...]]] = {
    "combined": (CombinedRequest, ()),
    "direct": (DirectRequest, ("phase",)),
    "aligned": (AlignedRequest, ("beta",)),
    "localized": (LocalizedRequest, ("method",)),
}


@dataclass(frozen=True, slots=True)
class DetectionOptions:
    """The options of a detection request; see `ttmark.shared.schemas.detection`."""

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
        kind, own = _REQUESTS[self.mode]
        return kind(
            inputs=documents,
            keys=None if self.keys is None else list(self.keys),
            fpr=self.fpr,
            normalize=self.normalize,
            **{name: getattr(self, name) for name in own},
            **origin,
        )
