"""Settings of the live check (`ttmark serve canary`)."""

from pathlib import Path

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from ttmark.services.state_folder import STATE_FOLDER


class CanarySettings(BaseSettings):
    """Which services are checked, how often, and with what."""

    model_config = SettingsConfigDict(env_prefix="TTMARK_", extra="ignore", frozen=True)

    host: str = Field(default="127.0.0.1", description="Address on which the canary serves its metrics.")
    canary_port: int = Field(default=8002, ge=0, le=65535, description="Port of the canary's metrics.")
    gen_url: str = Field(default="http://127.0.0.1:8000", description="The generation service to check.")
    detect_url: str = Field(default="http://127.0.0.1:8001", description="The detection service to check.")
    state: Path = Field(default=STATE_FOLDER, description="State folder of `ttmark up`.")
    model: str = Field(
        default="",
        description="Model to generate with; of several the first; empty: `smollm2` where it lies in the "
        "state folder, else `demo`.",
    )
    token: SecretStr | None = Field(
        default=None, description="Access token with generate, detect and detect:evidence."
    )
    token_file: Path = Field(
        default=Path(".ttmark/token"), description="File with the access token, unless TTMARK_TOKEN is set."
    )
    canary_seconds: float = Field(default=60.0, gt=0, description="Time between two checks.")
    canary_tokens: int = Field(default=300, ge=50, description="Length of the text that is generated.")
    canary_fpr: float = Field(
        default=1e-4, gt=0, lt=1, description="False positive rate that verdicts are held to."
    )

    @field_validator("model")
    @classmethod
    def _first(cls, value: str) -> str:
        return value.partition(",")[0].strip()
