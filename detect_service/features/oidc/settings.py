"""Settings of the people who sign in at an OpenID provider."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from ttmark.detect_service.features.oidc.oidc import OidcRules
from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import Separated, WebAddress
from ttmark.services.startup import StartupError
from ttmark.shared.access.scopes import Scope
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
