"""`ttmark serve gen|detect|canary`: one service in the foreground."""

import typer

from ttmark.services.allocator import bound_arenas
from ttmark.services.extras import needs
from ttmark.services.runtime import listen
from ttmark.services.settings.canary import CanarySettings
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.settings.store import KeyStoreSettings

app = typer.Typer(
    help="Run one service in the foreground; settings come from TTMARK_* variables.", no_args_is_help=True
)


@app.command()
@needs("gen")
def gen() -> None:
    """Run the generation service."""
    settings = GenerationSettings()
    KeyStoreSettings().check()
    listener = listen(settings.host, settings.gen_port, "TTMARK_HOST and TTMARK_GEN_PORT")
    # Imported here: the rest of the command line, and what is wrong with the settings, takes no torch.
    from ttmark.services.gen import build_generation_service
    from ttmark.services.server import connection_limits, serve, stop_times

    service = build_generation_service(settings)
    serve(service, listener, stop_times(settings), limits=connection_limits(settings))


@app.command()
@needs("detect")
def detect() -> None:
    """Run the detection service."""
    settings = DetectionSettings()
    KeyStoreSettings().check()
    listener = listen(settings.host, settings.detect_port, "TTMARK_HOST and TTMARK_DETECT_PORT")
    bound_arenas()
    from ttmark.services.detect import build_detection_service
    from ttmark.services.server import connection_limits, serve, stop_times

    service = build_detection_service(settings)
    limits, proxies = connection_limits(settings), settings.trusted_proxies
    serve(service, listener, stop_times(settings), limits=limits, proxies=proxies)


@app.command()
def canary() -> None:
    """Run the live check of both services: generate, detect, record."""
    settings = CanarySettings()
    from ttmark.services.canary import serve_canary

    serve_canary(settings)
