"""What TTMark offers to other programs: clients of its services, and the watermark itself.

`import ttmark` loads nothing; each name below is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ttmark.shared.client import AsyncClient, Client
    from ttmark.shared.watermark import Watermark, detect_aligned, detect_direct, detect_localized

__all__ = ["AsyncClient", "Client", "Watermark", "detect_aligned", "detect_direct", "detect_localized"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module("ttmark.shared.client" if name.endswith("Client") else "ttmark.shared.watermark")
    globals()[name] = value = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
