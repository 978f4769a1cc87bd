"""What the settings of both services share."""

from typing import Literal

from pydantic import Field

from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import (
    Amount,
    Folder,
    Host,
    Origins,
    Seconds,
    WebAddress,
)
from ttmark.services.state_folder import STATE_FOLDER, STATE_MEANING


class ServiceSettings(Settings):
    """What both services share."""

    host: Host = Field(default="127.0.0.1", description="Address to listen on.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="Least severe log events that are written."
    )
    state: Folder = Field(default=STATE_FOLDER, description=STATE_MEANING)
    key_refresh_seconds: Seconds = Field(
        default=15.0, description="How often keys are read again from the store."
    )
    token_refresh_seconds: Seconds = Field(
        default=2.0,
        description="How soon the revocation of an access token counts.",
    )
    replica_id: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="This replica's name, which should survive a restart. Left out: service, host and port.",
    )
    header_seconds: Seconds = Field(
        default=10.0, description="Time from a connection to the end of a request's headers."
    )
    body_seconds: Seconds = Field(
        default=30.0, description="Time from a request's headers to the end of its body."
    )
    max_connections: Amount = Field(
        default=4096,
        ge=1,
        description="Open connections; a further one replaces one that waits.",
    )
    max_body_bytes: Amount = Field(default=8 * 2**20, ge=1, description="Largest request body.")
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
        default=None,
        description="OTLP collector's address; left out: no tracing.",
    )
