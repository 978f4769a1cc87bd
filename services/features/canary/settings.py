"""Settings of the live check (`ttmark serve canary`)."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr, field_validator

from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import Folder, Host, Port, ReadableFile, WebAddress
from ttmark.services.startup import StartupError
from ttmark.services.state_folder import STATE_FOLDER, STATE_MEANING
from ttmark.shared.access.tokens import parse_token
from ttmark.shared.vault.stores.key_store_errors import InvalidToken


def _is_token(value: SecretStr) -> SecretStr:
    try:
        parse_token(value.get_secret_value())
    except InvalidToken as error:
        raise ValueError(str(error)) from None
    return value


class CanarySettings(Settings):
    """Which services are checked, and with what."""

    host: Host = Field(default="127.0.0.1", description="Address to listen on.")
    canary_port: Port = Field(default=8002, description="Port of the canary's metrics.")
    gen_url: WebAddress = Field(
        default="http://127.0.0.1:8000", description="The generation service to check."
    )
    detect_url: WebAddress = Field(
        default="http://127.0.0.1:8001", description="The detection service to check."
    )
    state: Folder = Field(default=STATE_FOLDER, description=STATE_MEANING)
    model: str = Field(
        default="",
        max_length=512,
        description="Model to generate with, as generation names it; of several the first.",
    )
    token: Annotated[SecretStr, AfterValidator(_is_token)] | None = Field(
        default=None, description="Access token with generate, detect and detect:evidence."
    )
    token_file: ReadableFile = Field(
        default=Path(".ttmark/token"), description="File with the access token, unless TTMARK_TOKEN is set."
    )

    def access_token(self) -> str:
        """The token itself, or that in the file. Raises StartupError: there is none."""
        if self.token is not None:
            return self.token.get_secret_value()
        token = self.text_of("token_file", advice="`ttmark tokens create` makes one")
        try:
            parse_token(token)
        except InvalidToken as error:
            raise StartupError(f"TTMARK_TOKEN_FILE: {error}") from None
        return token

    @field_validator("model")
    @classmethod
    def _first(cls, value: str) -> str:
        return value.partition(",")[0].strip()
