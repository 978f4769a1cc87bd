"""Settings of the public tier."""

from typing import Annotated

from pydantic import Field

from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import Amount, ReadableFile
from ttmark.services.startup import StartupError
from ttmark.shared.access.tokens import parse_token
from ttmark.shared.schemas.detection.detect import DEFAULT_FPR
from ttmark.shared.schemas.fields import says
from ttmark.shared.vault.stores.key_store_errors import InvalidToken


class PublicSettings(Settings):
    """Whether the public may ask, at which rate and how much."""

    public: bool = Field(
        default=False,
        description="Answer `POST /v1/detect/public`, and serve `/check` and "
        "`/.well-known/text-provenance.json`.",
    )
    public_fpr: Annotated[
        float, Field(ge=1e-100, le=1e-2), says("a false positive rate of the public is from 1e-100 to 0.01")
    ] = Field(default=DEFAULT_FPR, description="False positive rate of all public answers.")
    public_contact: str | None = Field(
        default=None,
        pattern="^(https://|mailto:)",
        max_length=2000,
        description="Who gives out public tokens, as https: or mailto:; shown to everybody.",
    )
    public_token_file: ReadableFile | None = Field(
        default=None,
        description="File with a token that has detect:public, for questions that come without one. "
        "Left out: a token is needed.",
    )
    public_words_per_day: Amount = Field(
        default=100_000,
        description="Words that a token may ask about publicly in a day (six characters each, at "
        "least 50 a question); an address without a token a tenth of it, a tenant's tokens together three "
        "times as many; 0: any.",
    )

    def load_public_token(self) -> str | None:
        """What people without a token are answered under, if they are. Raises StartupError: none is read."""
        if self.public_token_file is None:
            return None
        token = self.text_of("public_token_file")
        try:
            parse_token(token)
        except InvalidToken:
            raise StartupError("TTMARK_PUBLIC_TOKEN_FILE: the file holds no access token") from None
        return token
