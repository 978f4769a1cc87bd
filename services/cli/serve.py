"""`ttmark serve gen|detect|canary`: one service in the foreground."""

import typer

from services.runtime import listen, one_clear_line
from services.settings import DetectionSettings, GenerationSettings
from services.settings_canary import CanarySettings

app = typer.Typer(
    help="Run one service in the foreground; settings come from TTMARK_* variables.", no_args_is_help=True
)


@app.command()
def gen() -> None:
    """Run the generation service."""
    # Imported here: the rest of the command line must start without torch.
    from services.gen import build_generation_service
    from services.server import serve

    settings = GenerationSettings()
    with one_clear_line():
        listener = listen(settings.host, settings.gen_port)
        service = build_generation_service(settings)
    serve(service, listener, drain_seconds=settings.drain_seconds)


@app.command()
def detect() -> None:
    """Run the detection service."""
    from services.detect import build_detection_service
    from services.server import serve

    settings = DetectionSettings()
    with one_clear_line():
        listener = listen(settings.host, settings.detect_port)
        service = build_detection_service(settings)
    serve(service, listener, drain_seconds=10)


@app.command()
def canary() -> None:
    """Run the live check of both services: generate, detect, record."""
    from services.canary import serve_canary

    with one_clear_line():
        serve_canary(CanarySettings())
