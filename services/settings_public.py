"""Settings of the public tier."""

from ipaddress import ip_network
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from ttmark.services.runtime import StartupError
from ttmark.shared.access.token_records import parse_token
from ttmark.shared.schemas.detection import DEFAULT_FPR
from ttmark.shared.vault.key_store_errors import InvalidToken


class PublicSettings(BaseSettings):
    """Whether the public may ask, at which rate, how much, and by which address it is counted."""

    model_config = SettingsConfigDict(env_prefix="TTMARK_", extra="ignore", frozen=True)

    public: bool = Field(
        default=False,
        description="Answer `POST /v1/detect/public` for tokens with detect:public, and serve the page "
        "`/check` and `/.well-known/text-provenance.json`.",
    )
    public_fpr: float = Field(
        default=DEFAULT_FPR,
        ge=1e-100,
        le=1e-2,
        description="False positive rate of all public answers.",
    )
    public_contact: str | None = Field(
        default=None,
        pattern="^(https://|mailto:)",
        max_length=2000,
        description="Address of who gives out access tokens for public questions, https: or mailto:; shown "
        "to everybody.",
    )
    public_token_file: Path | None = Field(
        default=None,
        description="File with a token that has detect:public: the service uses it for public questions "
        "that come without a token, so that the page works without signing in. Left out: a token is needed.",
    )
    public_characters: int = Field(
        default=20_000, ge=1, le=500_000, description="Longest public question, in characters."
    )
    public_words_per_day: int = Field(
        default=100_000,
        ge=0,
        description="Words that a token may ask about publicly in a day, over all replicas; a word is six "
        "characters, a question at least 50 words; 0: any.",
    )
    public_tenant_words_per_day: int = Field(
        default=300_000,
        ge=0,
        description="Words that all tokens of a tenant together may ask about publicly in a day, over all "
        "replicas; 0: any.",
    )
    public_address_words_per_day: int = Field(
        default=10_000,
        ge=0,
        description="Words that a network address that sends no token may ask about publicly in a day, over "
        "all replicas; 0: any.",
    )
    public_address_requests_per_minute: int = Field(
        default=20,
        ge=0,
        description="Public requests of a network address that sends no token in a minute, over all "
        "replicas; 0: any.",
    )
    public_variants_per_asker: int = Field(
        default=4,
        ge=1,
        le=250,
        description="Public questions that a token, or an address without one, may ask about one passage "
        "in half of TTMARK_VARIANTS_WINDOW_SECONDS.",
    )
    public_variants: int = Field(
        default=12,
        ge=1,
        le=250,
        description="Public questions that all who ask about a tenant's keys, together, may ask about one "
        "passage in half of TTMARK_VARIANTS_WINDOW_SECONDS.",
    )
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Addresses and networks of proxies, separated by commas, such as `10.0.0.0/8`, whose "
        "X-Forwarded-For says who asks; empty: the address that connects does.",
    )

    @field_validator("public_contact", "public_token_file", mode="before")
    @classmethod
    def _left_out(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("trusted_proxies", mode="before")
    @classmethod
    def _split_proxies(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(part.strip() for part in value.split(",") if part.strip())

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            ip_network(one)  # a name, or `*`, would be believed from nobody, or from everybody
        return value

    def load_public_token(self) -> str | None:
        """What people without a token are answered under, if they are.

        Raises:
            StartupError: the file cannot be read or holds no token.
        """
        path = self.public_token_file
        if path is None:
            return None
        try:
            token = path.read_text().strip()
            parse_token(token)
        except (OSError, UnicodeDecodeError, InvalidToken) as error:
            reason = error.strerror if isinstance(error, OSError) else "it holds no access token"
            raise StartupError(f"cannot read the public token from {path} ({reason})") from None
        return token
