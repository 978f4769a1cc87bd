"""`ttmark serve gen|detect|canary`: one service in the foreground."""

import typer

from ttmark.services.extras import needs
from ttmark.services.runtime import listen, one_clear_line
from ttmark.services.settings import DetectionSettings, GenerationSettings
from ttmark.services.settings_canary import CanarySettings

app = typer.Typer(
    help="Run one service in the foreground; settings come from TTMARK_* variables.", no_args_is_help=True
)


@app.command()
@needs("gen")
def gen() -> None:
    """Run the generation service."""
    # Imported here: the rest of the command line must start without torch.
    from ttmark.services.gen import build_generation_service
    from ttmark.services.server import connection_limits, serve

    settings = GenerationSettings()
    with one_clear_line():
        listener = listen(settings.host, settings.gen_port)
        service = build_generation_service(settings)
    serve(service, listener, drain_seconds=settings.drain_seconds, limits=connection_limits(settings))


@app.command()
@needs("detect")
def detect() -> None:
    """Run the detection service."""
    from ttmark.services.detect import build_detection_service
    from ttmark.services.server import connection_limits, serve

    settings = DetectionSettings()
    with one_clear_line():
        listener = listen(settings.host, settings.detect_port)
        service = build_detection_service(settings)
    limits, proxies = connection_limits(settings), settings.trusted_proxies
    serve(service, listener, drain_seconds=10, limits=limits, proxies=proxies)


@app.command()
def canary() -> None:
    """Run the live check of both services: generate, detect, record."""
    from ttmark.services.canary import serve_canary

    with one_clear_line():
        serve_canary(CanarySettings())
