"""Where traces go, from the settings."""

from importlib.metadata import version

from opentelemetry.trace import TracerProvider

from ttmark.services.settings.base import ServiceSettings
from ttmark.services.startup import no_start_after
from ttmark.shared.observability.tracing import TracingUnavailable, otlp_tracer_provider


def open_tracing(settings: ServiceSettings, service: str) -> TracerProvider | None:
    """The provider of the process; None where no collector is named. It is flushed when the process ends.

    Raises:
        StartupError: a collector is named and the libraries are not installed.
    """
    if settings.traces_endpoint is None:
        return None
    with no_start_after(TracingUnavailable):
        return otlp_tracer_provider(settings.traces_endpoint, service=service, version=version("ttmark"))
