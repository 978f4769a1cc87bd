"""What TTMark offers to other programs: a library that marks and detects, clients of its services, its core.

`import ttmark` loads nothing; each name below is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ttmark.library.detection import detect
    from ttmark.library.finding import Finding
    from ttmark.library.key import Key
    from ttmark.library.model import Model, load
    from ttmark.library.single_token import SingleToken
    from ttmark.library.tandem import tandem
    from ttmark.shared.client import AsyncClient, Client
    from ttmark.shared.watermark.detectors.alignment import detect_aligned
    from ttmark.shared.watermark.detectors.block_scores import detect_direct
    from ttmark.shared.watermark.detectors.localized import detect_localized
    from ttmark.shared.watermark.schemes.watermark import Watermark

__all__ = [
    "AsyncClient",
    "Client",
    "Finding",
    "Key",
    "Model",
    "SingleToken",
    "Watermark",
    "detect",
    "detect_aligned",
    "detect_direct",
    "detect_localized",
    "load",
    "tandem",
]

_HOMES = {
    "AsyncClient": "shared.client",
    "Client": "shared.client",
    "Finding": "library.finding",
    "Key": "library.key",
    "Model": "library.model",
    "SingleToken": "library.single_token",
    "Watermark": "shared.watermark.schemes.watermark",
    "detect": "library.detection",
    "detect_aligned": "shared.watermark.detectors.alignment",
    "detect_direct": "shared.watermark.detectors.block_scores",
    "detect_localized": "shared.watermark.detectors.localized",
    "load": "library.model",
    "tandem": "library.tandem",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_HOMES[name]}")
    globals()[name] = value = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
