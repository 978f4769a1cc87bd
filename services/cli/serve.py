"""`ttmark serve gen|detect`: one service in the foreground."""

import ctypes
import sys
from typing import TypeVar

import typer

from ttmark.services.settings.base import ServiceSettings
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.settings.unknown_variables import check_settings
from ttmark.services.startup import listen, needs

# Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_ARENAS = 2
_LARGE_BYTES = 1 << 20

SettingsT = TypeVar("SettingsT", bound=ServiceSettings)


def bound_arenas() -> None:
    """Makes memory that threads have freed usable by all of them; called before there are threads.

    By default threads allocate from 8 arenas for each core, and every arena keeps what it once held. What is
    large goes back to the system at once. Systems without glibc are left as they are.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_M_ARENA_MAX, _ARENAS)
    mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    mallopt(_M_TRIM_THRESHOLD, _LARGE_BYTES)


def _checked(kind: type[SettingsT]) -> SettingsT:
    """Settings of a service; what else it reads is read, so that a start fails before it loads anything."""
    check_settings(kind)
    KeyStoreSettings().check()
    return kind()


app = typer.Typer(
    help="Run one service in the foreground; settings come from TTMARK_* variables.", no_args_is_help=True
)


@app.command()
@needs("gen")
def gen() -> None:
    """Run the generation service."""
    settings = _checked(GenerationSettings)
    listener = listen(settings.host, settings.gen_port, "TTMARK_HOST and TTMARK_GEN_PORT")
    # Imported here: the rest of the command line, and what is wrong with the settings, takes no torch.
    from ttmark.services.composition.generation_service import build_generation_service
    from ttmark.services.composition.server import serve

    serve(build_generation_service(settings), listener, settings)


@app.command()
@needs("detect")
def detect() -> None:
    """Run the detection service."""
    settings = _checked(DetectionSettings)
    listener = listen(settings.host, settings.detect_port, "TTMARK_HOST and TTMARK_DETECT_PORT")
    bound_arenas()
    from ttmark.services.composition.detection_service import build_detection_service
    from ttmark.services.composition.server import serve

    serve(build_detection_service(settings), listener, settings, proxies=settings.trusted_proxies)
