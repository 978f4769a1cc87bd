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
    from ttmark.shared.watermark import Watermark, detect_aligned, detect_direct, detect_localized

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
    "detect": "library.detection",
    "load": "library.model",
    "tandem": "library.tandem",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_HOMES.get(name, 'shared.watermark')}")
    globals()[name] = value = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
