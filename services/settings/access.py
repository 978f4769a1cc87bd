"""Settings of who may ask the detection service: people who sign in at an OpenID provider, and the public."""

from ipaddress import ip_network
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import Amount, ReadableFile, Separated, WebAddress
from ttmark.services.startup import StartupError
from ttmark.shared.access.oidc import OidcRules
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import parse_token
from ttmark.shared.schemas.detection import DEFAULT_FPR
from ttmark.shared.schemas.fields import says
from ttmark.shared.vault.key_store_errors import InvalidToken
from ttmark.shared.vault.names import Name

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class OidcSettings(Settings):
    """Whether tokens of an OpenID provider are taken beside ours, and what they open."""

    oidc_issuer: WebAddress | None = Field(
        default=None,
        description="OpenID provider whose JWT access tokens are taken, exactly as their `iss`. Left "
        "out: none are.",
    )
    oidc_audience: str | None = Field(
        default=None,
        max_length=500,
        description="`aud` of the provider's tokens: this service, as the provider knows it.",
    )
    oidc_client_id: str | None = Field(
        default=None,
        max_length=500,
        description="Public client (authorization code with PKCE) of the console. Left out: it takes "
        "tokens alone.",
    )
    oidc_tenant: Name = Field(
        default="local", description="Tenant whose keys the provider's tokens look for."
    )
    oidc_scopes: Annotated[tuple[Scope, ...], *Separated] = Field(
        default=(Scope.DETECT,),
        description="What the provider's tokens open: `detect`, `detect:evidence` or "
        "`detect:public`, separated by commas.",
    )
    oidc_evidence_group: str | None = Field(
        default=None,
        max_length=500,
        description="Group (claim `groups`) whose members also have `detect:evidence`.",
    )

    def oidc_rules(self) -> OidcRules | None:
        """Whose tokens are taken, if any are.

        Raises:
            StartupError: no audience, the client's own as audience, or a scope of generation.
        """
        if self.oidc_issuer is None:
            return None
        if self.oidc_audience is None:
            raise StartupError(
                "TTMARK_OIDC_ISSUER needs TTMARK_OIDC_AUDIENCE: else tokens for others open this"
            )
        address = urlsplit(self.oidc_issuer)
        if address.scheme != "https" and address.hostname not in _LOOPBACK:
            raise StartupError("TTMARK_OIDC_ISSUER: https, or whoever is on the way can sign people in")
        if self.oidc_audience == self.oidc_client_id:
            raise StartupError(
                "TTMARK_OIDC_AUDIENCE is the client's id: that is the audience of ID tokens, which open "
                "nothing. Register this service as an API (a resource) at the provider"
            )
        others = set(self.oidc_scopes) - {Scope.DETECT, Scope.DETECT_EVIDENCE, Scope.DETECT_PUBLIC}
        if others or not self.oidc_scopes:
            raise StartupError("TTMARK_OIDC_SCOPES: of detect, detect:evidence, detect:public at least one")
        return OidcRules(
            self.oidc_issuer,
            self.oidc_audience,
            self.oidc_tenant,
            frozenset(self.oidc_scopes),
            self.oidc_evidence_group,
        )


def _network(value: str) -> str:
    """A name, or `*`, would be believed from nobody, or from everybody."""
    try:
        ip_network(value)
    except ValueError:
        raise ValueError("each is an address, or a network such as 10.0.0.0/8") from None
    return value


Network = Annotated[str, AfterValidator(_network)]


class PublicSettings(Settings):
    """Whether the public may ask, at which rate, how much, and by which address it is counted."""

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
    trusted_proxies: Annotated[tuple[Network, ...], *Separated] = Field(
        default=(),
        description="Addresses and networks of proxies, separated by commas, whose X-Forwarded-For "
        "says who asks.",
    )

    def load_public_token(self) -> str | None:
        """What people without a token are answered under, if they are.

        Raises:
            StartupError: the file cannot be read or holds no token.
        """
        if self.public_token_file is None:
            return None
        token = self.text_of("public_token_file")
        try:
            parse_token(token)
        except InvalidToken:
            raise StartupError("TTMARK_PUBLIC_TOKEN_FILE: the file holds no access token") from None
        return token
