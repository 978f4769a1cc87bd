"""How settings are read from the environment, with one clear line for errors; what both services share."""

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from ttmark.services.settings.values import Amount, Folder, Host, Origins, Seconds, WebAddress
from ttmark.services.startup import StartupError, no_start_after
from ttmark.services.state_folder import STATE_FOLDER, STATE_MEANING

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

PREFIX = "TTMARK_"
_MOST_PROBLEMS = 5


class WrongSettings(StartupError):
    """Values of settings are none; `problems` says by variable what is wrong."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        said = [f"{name}: {reason}" for name, reason in problems.items()]
        super().__init__("; ".join(said[:_MOST_PROBLEMS]))
        self.problems = problems


class Settings(BaseSettings):
    """Fields from variables `TTMARK_*`; a variable that is empty is one that is left out.

    Raises:
        WrongSettings: values are none; the line names their variables and repeats no value, which may be a
            secret.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        validate_default=False,  # a file that is there by default may be missing where another says the same
    )

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise WrongSettings(_problems(error)) from None
        except SettingsError as error:
            raise StartupError(f"{PREFIX}*: {error}") from None

    def text_of(self, field: str, *, advice: str = "") -> str:
        """The text of the file that a field names, without blanks around it.

        Args:
            advice: what to do where the file is missing that is read by default.

        Raises:
            StartupError: it cannot be read. The line names the file only where it is the default: elsewhere
                somebody may have put the secret itself in its place.
        """
        path: Path = getattr(self, field)
        what = variable(field) if field in self.model_fields_set else f"{variable(field)} ({path} by default)"
        try:
            return path.read_text().strip()
        except UnicodeDecodeError:
            raise StartupError(f"{what}: the file holds no text") from None
        except OSError as error:
            then = f"; {advice}" if advice and field not in self.model_fields_set else ""
            raise StartupError(f"{what}: cannot be read: {error.strerror}{then}") from None


def variable(field: str) -> str:
    return PREFIX + field.upper()


def _problems(error: ValidationError) -> dict[str, str]:
    said: dict[str, str] = {}
    for one in error.errors(include_input=False, include_url=False):
        name = ", ".join(variable(str(part)) for part in one["loc"][:1])
        reason = one["msg"].removeprefix("Value error, ")
        said.setdefault(name, reason)
    return said


class ServiceSettings(Settings):
    """What both services share."""

    host: Host = Field(default="127.0.0.1", description="Address to listen on.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="Least severe log events that are written."
    )
    state: Folder = Field(default=STATE_FOLDER, description=STATE_MEANING)
    replica_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="This replica's name, which should survive a restart. Left out: service, host and port.",
    )
    max_body_bytes: Amount = Field(default=8 * 2**20, gt=0, description="Largest request body.")
    cors_origins: Origins = Field(
        default=(),
        description="Origins of web pages that may call from a browser (CORS), separated by commas; "
        "`*`: any; left out: none.",
    )
    drain_delay_seconds: float = Field(
        default=0.0,
        ge=0,
        le=3_600,
        description="Time after SIGTERM for which requests are still taken while `/readyz` answers "
        "503; 0 with `preStop` of Kubernetes.",
    )
    drain_seconds: Seconds = Field(
        default=30.0, description="Time for running requests after SIGTERM and that delay."
    )
    traces_endpoint: WebAddress | None = Field(
        default=None, description="OTLP collector's address; left out: no tracing."
    )

    def open_tracing(self, service: str) -> "TracerProvider | None":
        """What makes spans; None where no collector is named. It is flushed when the process ends.

        Raises:
            StartupError: a collector is named and the libraries are not installed.
        """
        if self.traces_endpoint is None:
            return None
        from ttmark.shared.observability.tracing import TracingUnavailable, otlp_tracer_provider

        with no_start_after(TracingUnavailable):
            return otlp_tracer_provider(self.traces_endpoint, service=service, version=version("ttmark"))
