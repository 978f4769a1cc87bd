"""Settings of the playground."""

from pydantic import Field

from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import WebAddress


class PlaygroundSettings(Settings):
    playground: bool = Field(
        default=False,
        description="Serve `/playground`, on which people watch a text being written.",
    )
    console_url: WebAddress = Field(
        default="http://127.0.0.1:8001",
        description="Detection service's address, as browsers reach it, for the playground.",
    )
