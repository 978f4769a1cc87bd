"""`ttmark serve gen|detect`: one service in the foreground."""

import ctypes
import sys

import typer

from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.settings.unknown_variables import of_features
from ttmark.services.startup import listen, needs
from ttmark.shared.features import modules_of

# Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_ARENAS = 2
_LARGE_BYTES = 1 << 20


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


def _check(features: str) -> None:
    """Reads what else a service reads, so that a start fails before it loads anything."""
    KeyStoreSettings().check()
    for settings in of_features(features):
        settings()
    for listener in modules_of("events", "ttmark.services.features"):
        listener.check()


app = typer.Typer(
    help="Run one service in the foreground; settings come from TTMARK_* variables.", no_args_is_help=True
)


@app.command()
@needs("gen")
def gen() -> None:
    """Run the generation service."""
    settings = GenerationSettings()
    _check("ttmark.gen_service.features")
    listener = listen(settings.host, settings.gen_port, "TTMARK_HOST and TTMARK_GEN_PORT")
    # Imported here: the rest of the command line, and what is wrong with the settings, takes no torch.
    from ttmark.services.composition.generation_service import build_generation_service
    from ttmark.services.composition.server import serve

    serve(build_generation_service(settings), listener, settings)


@app.command()
@needs("detect")
def detect() -> None:
    """Run the detection service."""
    settings = DetectionSettings()
    _check("ttmark.detect_service.features")
    listener = listen(settings.host, settings.detect_port, "TTMARK_HOST and TTMARK_DETECT_PORT")
    bound_arenas()
    from ttmark.services.composition.detection_service import build_detection_service
    from ttmark.services.composition.server import serve

    serve(build_detection_service(settings), listener, settings, proxies=settings.trusted_proxies)
